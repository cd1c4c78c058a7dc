#include "bench/lab/report_page.h"

namespace partita::lab {

const char* const kReportStyle = R"(
:root{--ink:#1b2330;--soft:#5b6678;--paper:#fff;--line:#d9dee6;--mark:#0b5fa5;--good:#14622f;--bad:#a1221b;--band:#eef1f5}
@media(prefers-color-scheme:dark){:root{--ink:#e2e6ee;--soft:#9aa5b6;--paper:#12161d;--line:#303846;--mark:#7cc0ff;
--good:#86d9a4;--bad:#ff9a90;--band:#1c222c}}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:76rem;padding:1.5rem;color:var(--ink);background:var(--paper)}
h1{font-size:1.6rem;margin:.2rem 0}h2{font-size:1.25rem;margin:2.4rem 0 .4rem;border-top:1px solid var(--line);padding-top:1.2rem}
h3{font-size:1rem;margin:1.2rem 0 .3rem}p{margin:.3rem 0}
a{color:var(--mark)}.skip{position:absolute;left:-99rem}.skip:focus{left:1rem;background:var(--paper);padding:.3rem}
:focus-visible{outline:3px solid var(--mark);outline-offset:2px}
nav{display:flex;flex-wrap:wrap;gap:.2rem 1rem;margin:.6rem 0}
.facts,.soft,figcaption{color:var(--soft)}.facts{font-size:.9rem}
.scroll{overflow-x:auto}
.at,li,h1,h2,h3,p,nav a,figcaption{overflow-wrap:anywhere}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.4rem 0}
th,td{padding:.25rem .8rem .25rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
td.n,th.n{text-align:right}thead th{color:var(--soft);font-weight:600}
td small{display:block;color:var(--soft)}.best{font-weight:700;color:var(--good)}.bad{color:var(--bad)}
code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}
select{font:inherit;color:inherit;background:var(--paper);border:1px solid var(--soft);border-radius:4px;padding:.15rem .4rem}
section{scroll-margin-top:3.2rem}
.runs{position:sticky;top:0;background:var(--paper);padding:.5rem 0;z-index:1}
ul.advice{padding-left:1.2rem}ul.advice li{margin:.35rem 0;max-width:60rem}
figure{margin:.8rem 0}figcaption{font-size:.9rem;margin-bottom:.3rem}
.heat{display:grid;grid-template-columns:minmax(5rem,13rem) 1fr;gap:0 .5rem}
.heat ol{list-style:none;margin:0;padding:0;font:11px/14px ui-monospace,monospace;text-align:right}
.heat li{height:14px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}.heat li.hot{font-weight:700}
.heat canvas{width:100%;display:block;image-rendering:pixelated;border:1px solid var(--soft)}
.key{display:flex;gap:.4rem;align-items:center;flex-wrap:wrap;font-size:.85rem;color:var(--soft)}
.key canvas{width:160px;height:12px;border:1px solid var(--soft)}
.at{min-height:1.5em;font-size:.9rem}
svg.chart{width:100%;min-width:40rem;max-width:64rem;height:auto;color:var(--ink)}
svg.chart text{font:11px system-ui,sans-serif;fill:currentColor}svg.chart .grid{stroke:var(--line)}
svg.chart .warm{fill:var(--band)}svg.chart path.l{fill:none;stroke:currentColor;stroke-width:1.6}
svg.chart path.p50{stroke-dasharray:6 4}svg.chart path.max{stroke-dasharray:1.5 3;stroke:var(--soft)}
svg.chart .bar{fill:url(#hatch);stroke:currentColor;stroke-width:.6;color:var(--bad)}svg.chart .count{fill:var(--mark)}
details{margin:.3rem 0}summary{cursor:pointer;color:var(--mark)}
@media print{.runs,.skip,nav{display:none}section{break-inside:avoid}}
)";

}  // namespace partita::lab
