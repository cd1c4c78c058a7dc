// Draws the heat maps of a report, as Chromium paints them, into one SVG: the picture of the README.
//   partita lab new my.toml && partita lab run my.toml
//   NODE_PATH=build/clients/node_modules node test/clients/report/picture.js telemetry-result/report.html > bench/lab/report.svg
'use strict';

const path = require('node:path');
const {pathToFileURL} = require('node:url');
const {chromium} = require('playwright-core');

const width = 300, gap = 24, rowHeight = 10, top = 62;
const escaped = (text) => String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;');

// Of each layout: its name and verdict in words, and the colour of each cell, row by row.
function readPage() {
  const data = JSON.parse(document.getElementById('data').textContent);
  return data.explain.map((layout, i) => {
    const canvas = document.querySelector(`canvas[data-layout="${layout.layout}"]`);
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const rows = layout.key_rows.length, columns = canvas.width / 8;
    const colour = (row, column) => {
      const at = 4 * (Math.floor((row + .1) * canvas.height / rows) * canvas.width + column * 8 + 1);
      return '#' + [0, 1, 2].map((k) => (pixels.data[at + k] >> 3 << 3).toString(16).padStart(2, '0')).join('');
    };
    const told = document.querySelectorAll('#verdict tbody tr')[0].children[i + 1].innerText.split('\n');
    return {
      name: layout.layout, keys: layout.entities[0].pk, told: [told[0], told.find((t) => t.startsWith('⚠'))?.split(',')[0] ?? 'nothing throttled'],
      cells: Array.from({length: rows}, (_, row) => Array.from({length: columns}, (_, column) => colour(row, column))),
    };
  });
}

// One path for each colour: runs of a row are one rectangle.
function mapOf(cells, left, height) {
  const paths = new Map();
  const w = width / cells[0].length, h = height / cells.length;
  cells.forEach((row, r) => {
    for (let from = 0, to; from < row.length; from = to) {
      for (to = from + 1; to < row.length && row[to] === row[from]; ++to);
      const piece = `M${(left + from * w).toFixed(1)} ${(top + r * h).toFixed(1)}h${((to - from) * w).toFixed(1)}v${h.toFixed(1)}h${((from - to) * w).toFixed(1)}z`;
      paths.set(row[from], (paths.get(row[from]) ?? '') + piece);
    }
  });
  return [...paths].map(([colour, d]) => `<path shape-rendering="crispEdges" fill="${colour}" d="${d}"/>`).join('\n');
}

(async () => {
  const browser = await chromium.launch({executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox']});
  const page = await browser.newPage();
  await page.goto(pathToFileURL(path.resolve(process.argv[2])).href);
  await page.waitForSelector('html[data-first-draw-ms]', {state: 'attached'});
  const layouts = await page.evaluate(readPage);
  await browser.close();
  const height = rowHeight * Math.max(...layouts.map((l) => l.cells.length));
  const all = layouts.length * (width + gap) - gap;
  const parts = layouts.map((layout, i) => {
    const left = i * (width + gap), text = (y, words, weight = 400) =>
      `<text x="${left}" y="${y}" font-weight="${weight}">${escaped(words)}</text>`;
    return [text(14, layout.name, 700), text(30, 'PartitionKey ' + layout.keys), text(48, layout.told.join('; ')), mapOf(layout.cells, left, height)].join('\n');
  });
  process.stdout.write(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="-12 -8 ${all + 24} ${top + height + 40}" font-family="sans-serif" font-size="12">
<rect x="-12" y="-8" width="100%" height="100%" fill="#fff"/>
${parts.join('\n')}
<text x="0" y="${top + height + 20}">The same operations on each layout. Keys down, time across; light: much load, dark: little, on one scale.</text>
</svg>
`);
})();
