#include "api/cli/heat_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "api/cli/figures.h"
#include "api/date_time.h"

namespace partita {

namespace {

constexpr size_t kLabelWidth = 24;
constexpr std::string_view kShades = " .:-=+*#%@";
// From black by blue and red to white, of the 256 colours of terminals.
constexpr std::array<int, 10> kColours = {16, 17, 19, 55, 90, 126, 161, 202, 214, 230};
constexpr double kPowersShown = 3;

// 0 for nothing, else 1 to 9.
size_t ShadeOf(double value, double hottest) {
  if (value <= 0 || hottest <= 0) return 0;
  const double level = 1 + std::log10(value / hottest) / kPowersShown;
  return 1 + static_cast<size_t>(std::clamp(level, 0.0, 1.0) * static_cast<double>(kShades.size() - 2) + 0.5);
}

// Of text in UTF-8, to so many characters; the rest is blanks or dots.
std::string Fitted(std::string_view text, size_t width) {
  std::string out;
  size_t characters = 0;
  for (size_t i = 0; i < text.size(); ++characters) {
    size_t end = i + 1;
    while (end < text.size() && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) ++end;
    if (characters + 1 == width && end < text.size()) {
      out += "~";
      i = text.size();
    } else {
      out.append(text.substr(i, end - i));
      i = end;
    }
  }
  if (characters < width) out.append(width - characters, ' ');
  return out;
}

std::string LabelOf(const HeatPicture& picture, size_t bucket) {
  const HeatBucket& at = picture.buckets[bucket];
  if (at.table.empty()) return "(first)";
  return at.partition_key.empty() ? at.table : at.table + " " + at.partition_key;
}

void DrawRow(const HeatPicture& picture, size_t bucket, size_t metric, double hottest, HeatStyle style,
             std::string* out) {
  size_t last = SIZE_MAX;
  for (size_t column = 0; column < picture.columns; ++column) {
    const size_t shade = ShadeOf(picture.at(column, bucket)[metric], hottest);
    if (style == HeatStyle::kColour && shade != last) {
      out->append("\x1b[48;5;" + std::to_string(kColours[shade]) + "m");
    }
    out->push_back(style == HeatStyle::kColour ? ' ' : kShades[shade]);
    last = shade;
  }
  if (style == HeatStyle::kColour) out->append("\x1b[0m");
}

std::string TimeLine(const HeatPicture& picture) {
  const uint64_t seconds = uint64_t{picture.column_seconds} * picture.columns;
  const std::string begin = FormatDateTime(DateTime{picture.begin_ticks - picture.begin_ticks % 10'000'000});
  std::string line(kLabelWidth + 1, ' ');
  line += begin;
  const std::string end = "now, " + FormatSeconds(static_cast<double>(seconds)) + " later";
  const size_t used = begin.size() + end.size();
  line.append(picture.columns > used ? picture.columns - used : 1, ' ');
  return line + end;
}

void DrawTop(const HeatReport& report, HeatMetric metric, std::string* out) {
  const auto& top = report.top[static_cast<size_t>(metric)];
  const double total = report.total[static_cast<size_t>(metric)];
  out->append("\nhottest partitions by ")
      .append(kHeatMetricNames[static_cast<size_t>(metric)])
      .append(", of " + HeatRate(metric, total) + " in all\n");
  if (top.empty()) out->append("  none\n");
  for (const HotPartition& hot : top) {
    char share[32];
    std::snprintf(share, sizeof(share), "%5.1f %%", total > 0 ? hot.per_second / total * 100 : 0.0);
    out->append("  " + Fitted(HeatRate(metric, hot.per_second), 16) + share + "  " + hot.table + " " +
                hot.partition_key + (hot.key_is_cut ? "..." : "") + "\n");
  }
}

}  // namespace

std::string HeatRate(HeatMetric metric, double per_second) {
  if (metric == HeatMetric::kBytes) return FormatBytes(static_cast<uint64_t>(per_second)) + "/s";
  char text[48];
  if (metric == HeatMetric::kCpu) {
    std::snprintf(text, sizeof(text), "%.3f cores", per_second / 1e9);
  } else if (per_second < 100) {
    std::snprintf(text, sizeof(text), "%.1f/s", per_second);
  } else {
    return FormatCount(static_cast<uint64_t>(per_second + 0.5)) + "/s";
  }
  return text;
}

std::string DrawHeat(const HeatReport& report, HeatMetric metric, HeatStyle style) {
  const HeatPicture& picture = report.picture;
  const size_t index = static_cast<size_t>(metric);
  double hottest = 0;
  for (const HeatValues& cell : picture.cells) hottest = std::max(hottest, cell[index]);
  std::string out(kHeatMetricNames[index]);
  out += " by keys (down) and time (across), each column " + std::to_string(picture.column_seconds) +
         " s; hottest cell " + HeatRate(metric, hottest) + "\n";
  for (size_t bucket = 0; bucket < picture.buckets.size(); ++bucket) {
    out += Fitted(LabelOf(picture, bucket), kLabelWidth) + " ";
    DrawRow(picture, bucket, index, hottest, style, &out);
    out += "\n";
  }
  out += TimeLine(picture) + "\n";
  DrawTop(report, metric, &out);
  return out;
}

namespace {

constexpr std::string_view kPageStart = R"(<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>Partita heat</title><style>
body{font:14px system-ui,sans-serif;margin:1.5em;background:#fff;color:#222}
canvas{width:100%;height:60vh;image-rendering:pixelated;border:1px solid #888;background:#000}
table{border-collapse:collapse;margin-top:1em}td,th{padding:.15em .8em;text-align:left}
th.n,td.n{text-align:right;font-variant-numeric:tabular-nums}
@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}
</style><h1>Where the load lies</h1>
<p><label>Metric <select id="metric"></select></label> <span id="at" aria-live="polite"></span></p>
<canvas id="c" role="img" tabindex="0" aria-label="Load by time, across, and keys, down; arrow keys tell the values"></canvas>
<noscript>The figures are in this file as JSON; drawing them takes a script.</noscript>
<p>Black: nothing. The brighter, the hotter, over three powers of ten up to the hottest cell.</p>
<p id="span"></p><table id="top"></table><script type="application/json" id="d">)";
constexpr std::string_view kPageEnd = R"(</script><script>
const d=JSON.parse(document.getElementById('d').textContent),$=i=>document.getElementById(i);
const ramp=[[0,0,0],[20,20,90],[90,20,140],[200,30,90],[250,130,30],[255,250,210]];
const label=b=>(b.table||'(first)')+' '+b.from;
const rate=(m,v)=>m=='bytes'?(v/1048576).toFixed(3)+' MiB/s':m=='cpu'?(v/1e9).toFixed(4)+' cores':v.toFixed(1)+'/s';
for(const m in d.cells){const o=document.createElement('option');o.textContent=m;$('metric').append(o)}
$('metric').value=d.shown;
const n=d.buckets.length,time=c=>new Date(Date.parse(d.begin)+c*d.column_seconds*1e3).toLocaleString();
$('span').textContent=time(0)+' to '+time(d.columns)+', '+d.column_seconds+' s a column; keys from '+label(d.buckets[0])+' (top) to '+label(d.buckets[n-1]);
function draw(){const m=$('metric').value,v=d.cells[m],hot=v.reduce((a,b)=>Math.max(a,b),1e-9),c=$('c');c.width=d.columns;c.height=n;
const x=c.getContext('2d'),p=x.createImageData(d.columns,n);
for(let i=0;i<v.length;i++){const a=v[i]>0?Math.max(.06,1+Math.log10(v[i]/hot)/3):0,s=a*(ramp.length-1),k=Math.min(ramp.length-2,s|0),
o=4*((i%n)*d.columns+(i/n|0));for(let j=0;j<3;j++)p.data[o+j]=ramp[k][j]+(s-k)*(ramp[k+1][j]-ramp[k][j]);p.data[o+3]=255}
x.putImageData(p,0,0);const t=$('top');t.textContent='';
for(const h of [['Table','Partition','Rate','Share'],...d.top[m].map(h=>[h.table,h.partition+(h.cut?'…':''),rate(m,h.per_second),(100*h.per_second/(d.total[m]||1)).toFixed(1)+' %'])]){
const r=t.insertRow();h.forEach((w,i)=>{const e=document.createElement(r.rowIndex?'td':'th');if(!r.rowIndex)e.scope='col';
e.textContent=w;if(i>1)e.className='n';r.append(e)})}}
let column=d.columns-1,bucket=0;
function point(c,b){column=Math.min(d.columns-1,Math.max(0,c));bucket=Math.min(n-1,Math.max(0,b));const m=$('metric').value;
$('at').textContent=time(column)+'  from '+label(d.buckets[bucket])+'  '+rate(m,d.cells[m][column*n+bucket])}
$('metric').onchange=draw;draw();
$('c').onmousemove=e=>point(e.offsetX/$('c').clientWidth*d.columns|0,e.offsetY/$('c').clientHeight*n|0);
$('c').onkeydown=e=>{const step={ArrowLeft:[-1,0],ArrowRight:[1,0],ArrowUp:[0,-1],ArrowDown:[0,1]}[e.key];
if(step){e.preventDefault();point(column+step[0],bucket+step[1])}};
</script></html>
)";

}  // namespace

std::string HeatHtml(const HeatReport& report, HeatMetric metric) {
  std::string html(kPageStart);
  html += "{\"shown\":\"" + std::string(kHeatMetricNames[static_cast<size_t>(metric)]) + "\",";
  // Within a script only the beginning of a tag would end it.
  for (const char c : HeatJson(report).substr(1)) {
    if (c == '<') {
      html += "\\u003c";
    } else {
      html.push_back(c);
    }
  }
  return html.append(kPageEnd);
}

}  // namespace partita
