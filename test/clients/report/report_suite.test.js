// The lab's report in Debian's Chromium, by playwright-core, and its histograms in HdrHistogram's reader. The environment names the program (LAB_PROGRAM).
'use strict';

const assert = require('node:assert/strict');
const {execFileSync} = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const {after, before, describe, test} = require('node:test');
const {pathToFileURL} = require('node:url');
const hdr = require('hdr-histogram-js');
const {chromium} = require('playwright-core');

// What a reader may wait for; a busy machine of a test run gets four times as long before it fails.
const firstDrawMs = 500;
const patience = 4;
const browserPath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const check = (section, sentence, body) => test(`report ${section}: ${sentence}`, body);

describe('report', () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'lab-report-'));
  const file = path.join(directory, 'report.html');
  let browser;

  before(async () => {
    const words = ['lab', 'run', path.join(__dirname, 'planted_hot_range.toml'), '--out', directory];
    if (process.env.TABLE_IO) words.push('--io', process.env.TABLE_IO);
    execFileSync(process.env.LAB_PROGRAM, words, {stdio: ['ignore', 'ignore', 'pipe']});
    // A container may have no user name spaces and a small /dev/shm.
    browser = await chromium.launch({executablePath: browserPath, args: ['--no-sandbox', '--disable-dev-shm-usage']});
  });
  after(async () => {
    await browser?.close();
    fs.rmSync(directory, {recursive: true});
  });

  // The page, drawn, with all that it asked for and complained of.
  async function open(options = {}) {
    const context = await browser.newContext({viewport: {width: 1200, height: 900}, ...options});
    const page = await context.newPage();
    const noticed = {requests: [], complaints: []};
    page.on('request', (request) => noticed.requests.push(request.url()));
    page.on('console', (message) => noticed.complaints.push(message.text()));
    page.on('pageerror', (error) => noticed.complaints.push(error.message));
    await page.goto(pathToFileURL(file).href);
    await page.waitForSelector('html[data-first-draw-ms]', {state: 'attached', timeout: 20000});
    return {page, noticed};
  }

  // The page of what `change` makes of the run's result.
  async function openChanged(change) {
    const result = JSON.parse(fs.readFileSync(path.join(directory, 'result.json'), 'utf8'));
    change(result);
    const changed = path.join(directory, 'changed.json'), html = path.join(directory, 'changed.html');
    fs.writeFileSync(changed, JSON.stringify(result));
    execFileSync(process.env.LAB_PROGRAM, ['lab', 'report', changed, '--out', html]);
    const page = await (await browser.newContext()).newPage();
    await page.goto(pathToFileURL(html).href);
    return page;
  }

  check('1', 'It asks for nothing but itself and complains of nothing', async () => {
    for (const colorScheme of ['light', 'dark']) {
      const {page, noticed} = await open({colorScheme});
      await page.locator('details').first().locator('summary').click();
      await page.selectOption('#op', {index: 1});
      assert.deepEqual(noticed, {requests: [pathToFileURL(file).href], complaints: []});
      await page.context().close();
    }
  });

  check('2', 'Twenty runs are drawn at once', async () => {
    const drawn = [];
    for (let i = 0; i < 3; i++) {
      const {page} = await open();
      const {cells, ms} = await page.evaluate(() => ({
        cells: JSON.parse(document.getElementById('data').textContent).cells.length,
        ms: +document.documentElement.dataset.firstDrawMs,
      }));
      assert.equal(cells, 20);
      drawn.push(ms);
      await page.context().close();
    }
    console.log(`   first draw of 20 runs after ${drawn.join(', ')} ms; ${firstDrawMs} are allowed`);
    assert.ok(Math.min(...drawn) < patience * firstDrawMs, `${drawn} ms`);
  });

  check('3', 'The planted hot key range is the lightest row', async () => {
    const {page} = await open();
    const rows = await page.evaluate(() => {
      const canvas = document.querySelector('canvas[data-layout="device"]');
      const keys = JSON.parse(document.getElementById('data').textContent).explain[0].key_rows;
      const height = canvas.height / keys.length;
      return keys.map((key, row) => {
        const pixels = canvas.getContext('2d').getImageData(0, row * height, canvas.width, height).data;
        let sum = 0;
        for (let i = 0; i < pixels.length; i += 4) sum += .2126 * pixels[i] + .7152 * pixels[i + 1] + .0722 * pixels[i + 2];
        return {key, lightness: sum / (pixels.length / 4)};
      });
    });
    assert.ok(rows.length > 5, JSON.stringify(rows));
    rows.sort((a, b) => b.lightness - a.lightness);
    assert.equal(rows[0].key, 'hot', JSON.stringify(rows));
    assert.ok(rows[0].lightness > 1.5 * rows[1].lightness, JSON.stringify(rows));
  });

  check('4', 'All that can be used is reached and used by the keyboard', async () => {
    const {page} = await open();
    const reached = new Map();
    for (let i = 0; i < 60; i++) {
      await page.keyboard.press('Tab');
      const name = await page.evaluate(() => {
        const e = document.activeElement;
        return e.id || e.dataset.layout || e.textContent.slice(0, 30);
      });
      if (reached.has(name) && name.length < 3) break;
      reached.set(name, i);
    }
    for (const name of ['To the verdict', 'What to change', 'run', 'op', 'device', 'one', 'hashed', 'Key ranges as a table']) {
      assert.ok(reached.has(name), `${name} is not among ${[...reached.keys()]}`);
    }
    const canvas = page.locator('canvas[data-layout="device"]');
    const said = () => canvas.evaluate((c) => c.closest('figure').querySelector('.at').textContent);
    await canvas.focus();
    await page.keyboard.press('ArrowRight');
    const first = await said();
    assert.match(first, /s, from “hot”: [\d.,]+ units\/s/);
    await page.keyboard.press('ArrowDown');
    assert.notEqual(await said(), first);
    const drawn = () => page.evaluate(() => document.querySelector('svg.chart path.p99').getAttribute('d'));
    const before = await drawn();
    await page.focus('#run');
    await page.keyboard.press('ArrowDown');
    assert.notEqual(await drawn(), before);
  });

  check('5', 'It is read without colour: shades rise in lightness, and words say what colours do', async () => {
    const {page} = await open();
    const scale = await page.evaluate(() => {
      const key = document.querySelector('.key canvas');
      const p = key.getContext('2d').getImageData(0, 0, key.width, 1).data;
      return Array.from({length: key.width}, (_, i) => .2126 * p[4 * i] + .7152 * p[4 * i + 1] + .0722 * p[4 * i + 2]);
    });
    scale.forEach((lightness, i) => assert.ok(i === 0 || lightness >= scale[i - 1] - 1, `shade ${i} is darker: ${scale}`));
    const bad = await page.locator('.bad').allTextContents();
    assert.ok(bad.length > 0 && bad.every((text) => text.startsWith('⚠')), `${bad}`);
    const best = await page.locator('.best').allTextContents();
    assert.ok(best.every((text) => text.startsWith('★ best')), `${best}`);
    const canvases = await page.locator('canvas').evaluateAll((all) => all.map((c) => c.getAttribute('aria-label')));
    const charts = await page.locator('svg.chart').evaluateAll((all) => all.map((c) => c.getAttribute('aria-label')));
    for (const label of [...canvases, ...charts]) assert.ok(label && label.length > 20, `${label}`);
  });

  check('6', 'Text stands out on light and on dark', async () => {
    for (const colorScheme of ['light', 'dark']) {
      const {page} = await open({colorScheme});
      const ratios = await page.evaluate(() => {
        const channels = (text) => text.match(/[\d.]+/g).slice(0, 3).map((v) => v / 255)
          .map((v) => (v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4));
        const light = (text) => channels(text).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
        const paper = light(getComputedStyle(document.body).backgroundColor);
        return ['body', '.facts', 'a', '.bad', 'figcaption', 'td small'].map((name) => {
          const ink = light(getComputedStyle(document.querySelector(name)).color);
          return [name, (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05)];
        });
      });
      for (const [name, ratio] of ratios) assert.ok(ratio >= 4.5, `${name} on ${colorScheme}: ${ratio}`);
      await page.context().close();
    }
  });

  check('7', 'Words of the experiment are text, never markup', async () => {
    const {page} = await open();
    assert.match(await page.locator('header').innerText(), /writes <most> of all/);
  });

  check('8', 'Each chart says of which run it is, and is no smaller on a narrow screen', async () => {
    const {page} = await open({viewport: {width: 380, height: 800}});
    const run = await page.locator('#run option:checked').innerText();
    for (const caption of await page.locator('figcaption').allTextContents()) assert.ok(caption.endsWith(run), caption);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 380);
    for (const width of await page.locator('svg.chart').evaluateAll((all) => all.map((c) => c.clientWidth))) {
      assert.ok(width >= 600, `${width}`);
    }
    const [line, label] = await page.evaluate(() => {
      const chart = document.querySelector('svg.chart');
      const zero = [...chart.querySelectorAll('path.grid')].pop();
      const warm = [...chart.querySelectorAll('text')].find((e) => e.textContent === 'warm-up');
      return [zero.getBoundingClientRect().bottom, warm.getBoundingClientRect().top];
    });
    assert.ok(label > line - 1, `the line at ${line} strikes through what begins at ${label}`);
  });

  check('9', "HdrHistogram's own reader finds in the log what result.json says", async () => {
    const result = JSON.parse(fs.readFileSync(path.join(directory, 'result.json'), 'utf8'));
    const log = new hdr.HistogramLogReader(fs.readFileSync(path.join(directory, 'latency.hdr.log'), 'utf8'));
    let lines = 0;
    for (let histogram; (histogram = log.nextIntervalHistogram()) !== null; ++lines) {
      const words = histogram.tag.split('/');
      const cell = result.cells.find((one) => one.layout === words[0] && `${one.repeat}` === words.at(-2));
      const op = cell.ops.find((one) => one.op === words.at(-1));
      const counted = op.latency_us_counts.reduce((sum, [, count]) => sum + count, 0);
      assert.equal(histogram.totalCount, counted, histogram.tag);
      for (const [percentile, told] of [[50, op.p50_ms], [99, op.p99_ms], [100, op.max_ms]]) {
        const read = histogram.getValueAtPercentile(percentile) / 1e6;
        assert.ok(Math.abs(read - told) <= 0.02 * told, `${histogram.tag}: p${percentile} ${read}, not ${told} ms`);
      }
    }
    const completed = result.cells.flatMap((cell) => cell.ops).filter((op) => op.latency_us_counts.length > 0);
    assert.ok(lines > 0);
    assert.equal(lines, completed.length);
  });

  check('10', 'A layout that is loaded in its own way says so', async () => {
    const page = await openChanged((result) => { result.explain[1].own_arrival = 'ramp 1 to 9/s'; });
    assert.match(await page.locator('#layout-1').innerText(), /Loaded in its own way: ramp 1 to 9\/s/);
    assert.doesNotMatch(await page.locator('#layout-0').innerText(), /Loaded in its own way/);
    await page.context().close();
  });

  check('11', 'The head names the targets that there are, and the seed to its last digit', async () => {
    const page = await openChanged((result) => { result.seed_text = '9007199254740993'; });
    assert.match(await page.locator('.facts').innerText(), /; targets 60 units\/s a partition; durability memory, memory 64 MiB; seed 9007199254740993,/);
    await page.context().close();
  });

  check('12', 'A run in which nothing was completed tells no latency, and what was not told is a dash', async () => {
    const page = await openChanged((result) => {
      const runs = result.cells.filter((cell) => cell.layout === 'device');
      for (const cell of runs.slice(0, 3)) Object.assign(cell.ops[0], {operations: 5, throughput: 0, p99_ms: 0});
      for (const cell of runs) Object.assign(cell.ops[1], {scanned: null, density: null});
    });
    const cells = page.locator('#verdict tbody tr td:nth-of-type(1)');
    const [write, latest] = await cells.allInnerTexts();
    assert.match(write, /p99 (?!0 ms)[\d.]+ ms[^]*none completed in 3 of 5 runs/);
    assert.match(latest, /scans – for/);
    await page.context().close();
  });

  check('13', 'Of what is no result of a run it says so', async () => {
    for (const change of [(result) => delete result.explain[0].ops, (result) => { result.cells[0].timeline.due = 7; }]) {
      const page = await openChanged(change);
      assert.match(await page.locator('#main').innerText(), /^⚠ This result cannot be drawn/);
      await page.context().close();
    }
  });

  check('14', 'A part of one try that was refused is hatched', async () => {
    const page = await openChanged((result) => {
      for (const {timeline} of result.cells) {
        timeline.entities.fill(1);
        timeline.refused.fill(0)[0] = .0313;
      }
    });
    const shades = await page.evaluate(() => [0, 3].map((column) => {
      const context = document.querySelector('canvas[data-layout="device"]').getContext('2d');
      const pixels = context.getImageData(8 * column, 0, 8, 14).data;
      return new Set(Array.from({length: pixels.length / 4}, (_, i) => pixels.slice(4 * i, 4 * i + 4).join())).size;
    }));
    assert.ok(shades[0] > 1, `${shades}`);
    assert.equal(shades[1], 1);
    await page.context().close();
  });

  check('15', 'What ended behind all columns is told as that, and is no rate', async () => {
    const page = await openChanged((result) => {
      for (const {timeline} of result.cells) {
        for (const [name, numbers] of Object.entries(timeline)) {
          if (!Array.isArray(numbers)) continue;
          const size = 120 * (name === 'entities' || name === 'refused' ? timeline.rows : 1);
          timeline[name] = Array.from({length: size}, (_, i) => numbers[i] ?? 0);
        }
        timeline.entities[120 * timeline.rows - 1] = 1e9;
      }
    });
    const scale = await page.locator('.key').first().innerText();
    const hot = +scale.match(/([\d,.]+)\/s, on one scale/)[1].replaceAll(',', '');
    assert.ok(hot < 1e6, scale);
    await page.locator('summary', {hasText: /^As a table/}).first().click();
    assert.match(await page.locator('details[open] tbody tr').last().innerText(), /^11\.9 s and later/);
    await page.context().close();
  });
});
