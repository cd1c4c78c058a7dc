#include "bench/lab/report_page.h"

namespace partita::lab {

// Words and tables; the charts follow in report_charts.cc.
const char* const kReportScript = R"js('use strict';
// Of what is no result as a run writes it the page says so.
const sayUndrawable=e=>document.getElementById('main').replaceChildren(
 '⚠ This result cannot be drawn, since it is not as a run of the lab writes it: '+e.message);
addEventListener('error',sayUndrawable);
const d=JSON.parse(document.getElementById('data').textContent);
const el=(tag,attributes,...children)=>{const e=document.createElement(tag);
 for(const [k,v] of Object.entries(attributes||{}))if(v!==undefined)e.setAttribute(k,v);
 e.append(...children.flat().map(c=>c instanceof Node?c:String(c)));return e};
const svg=(tag,attributes,...children)=>{const e=document.createElementNS('http://www.w3.org/2000/svg',tag);
 for(const [k,v] of Object.entries(attributes||{}))e.setAttribute(k,v);e.append(...children);return e};
const num=v=>v===null||!isFinite(v)?'–':v===0?'0':Math.abs(v)>=1e4?Math.round(v).toLocaleString('en'):
 String(+(Math.abs(v)>=100?v.toFixed(0):Math.abs(v)>=10?v.toFixed(1):Math.abs(v)>=.1?v.toFixed(2):v.toPrecision(2)));
const ms=v=>v>=1000?num(v/1000)+' s':num(v)+' ms',percent=v=>num(100*v)+' %';
const median=v=>{const s=[...v].sort((a,b)=>a-b),m=s.length>>1;return s.length%2?s[m]:(s[m-1]+s[m])/2};
const layouts=d.explain.map(l=>l.layout),ops=d.explain[0].ops.map(o=>o.op),rates=[...new Set(d.cells.map(c=>c.rate))];
const cellsOf=(layout,rate)=>d.cells.filter(c=>c.layout===layout&&c.rate===rate);
// Of the runs that have such a figure; null: none has. Where nothing was completed there is only what was refused.
const isDue=metric=>['throughput','throttled','dropped'].includes(metric);
const figure=(layout,rate,op,metric)=>{const all=cellsOf(layout,rate).map(c=>c.ops[op])
  .filter(o=>o[metric]!==null&&(o.throughput>0||isDue(metric))).map(o=>o[metric]);
 return all.length?median(all):null};
const idOf=i=>'layout-'+i;
const table=(head,rows,caption)=>el('div',{class:'scroll'},el('table',{},caption?el('caption',{class:'soft'},caption):[],
 el('thead',{},el('tr',{},head.map((h,i)=>el('th',{scope:'col',class:i?'n':undefined},h)))),
 el('tbody',{},rows.map(r=>el('tr',{},r.map((c,i)=>i===0?el('th',{scope:'row'},c):
  el('td',{class:typeof c==='string'&&/^[\d–<]/.test(c)?'n':undefined},c)))))));

function head(){
 document.title=d.name+' – key-layout lab';
 const targets=[];
 if(d.partition_rate)targets.push(d.partition_rate+' units/s a partition');
 if(d.account_rate)targets.push(d.account_rate+' units/s in all');
 const limits=d.target!=='embedded'?'on '+d.target+(d.target==='rocksdb'?', which has no limits':', whose limits are its own'):targets.length?'targets '+targets.join(', '):'no throughput targets';
 // Older results do not tell.
 const store=d.ran_on&&d.ran_on.memory?'; durability '+d.asked_for.durability+', memory '+d.ran_on.memory:'';
 document.getElementById('head').append(el('h1',{},d.name),el('p',{},d.description||''),
  el('p',{class:'facts'},num(d.records)+' records before; '+rates.join(', ')+'; '+d.warmup_s+' s warm-up and '+d.duration_s+
   ' s measured; each layout '+d.repeats+' time(s), in turns; '+
   (d.cells_kept?'resumed: '+d.cells_kept+' of '+d.cells.length+' runs were done before an interruption; ':'')+limits+store+'; seed '+(d.seed_text||d.seed)+', stream '+d.stream_hash+'; Partita '+d.partita),
  el('nav',{'aria-label':'Parts'},el('a',{href:'#verdict'},'Verdict'),el('a',{href:'#change'},'What to change'),
   layouts.map((l,i)=>el('a',{href:'#'+idOf(i)},l))));
}

function verdictCell(layout,rate,op,winner){
 const f=m=>figure(layout,rate,op,m),bad=[],cells=cellsOf(layout,rate),sum=m=>cells.reduce((a,c)=>a+c.ops[op][m],0);
 if(f('throttled')>=.0005)bad.push(percent(f('throttled'))+' throttled');
 if(f('dropped')>=.0005)bad.push(percent(f('dropped'))+' not done');
 if(sum('failed')>0)bad.push(num(sum('failed'))+' failed in all runs: '+(cells.map(c=>c.ops[op].first_error).find(e=>e)||'?'));
 if(sum('missing')>0)bad.push(num(sum('missing'))+' found nothing in all runs');
 if(cells.some(c=>c.generator_limited))bad.push('machine too slow for the load');
 if(cells.some(c=>c.clients_limited))bad.push('all clients were busy: more of them ([arrival] clients) might do more');
 const none=cells.filter(c=>c.ops[op].operations>0&&!(c.ops[op].throughput>0)).length;
 if(none&&none<cells.length)bad.push('none completed in '+none+' of '+cells.length+' runs');
 const time=f('p99_ms')===null?'none completed':'p99 '+ms(f('p99_ms'));
 return el('td',{},winner===layout?el('span',{class:'best'},'★ best: '+time):time,
  el('small',{},'p50 '+ms(f('p50_ms'))+', '+num(f('throughput'))+'/s, scans '+num(f('scanned'))+' for '+num(f('returned'))),
  bad.length?el('small',{class:'bad'},'⚠ '+bad.join(', ')):[]);
}

function verdict(){
 const section=el('section',{id:'verdict','aria-labelledby':'verdict-h'},el('h2',{id:'verdict-h'},'Verdict'));
 for(const rate of rates){
  section.append(el('h3',{},rate),el('div',{class:'scroll'},el('table',{},
   el('thead',{},el('tr',{},el('th',{scope:'col'},'Operation'),layouts.map(l=>el('th',{scope:'col'},l)),el('th',{scope:'col'},'Winner'))),
   el('tbody',{},ops.map((name,op)=>{
    const v=d.verdicts.find(v=>v.rate===rate&&v.op===name),winner=v?v.winner:'';
    return el('tr',{},el('th',{scope:'row'},name),layouts.map(l=>verdictCell(l,rate,op,winner)),
     el('td',{},winner||'none: '+(v&&v.why||'not beyond doubt')))})))));
 }
 section.append(el('p',{class:'soft'},'Medians of the repeats. Latency counts from when an operation was due. A star: the shortest p99 by '+
  'a 95 % interval over at least three repeats, among layouts that did all they were asked and met the goal, '+
  'where neither this machine nor the number of clients was the limit. '+
  'Where intervals overlap there is none.'));
 for(const f of d.failed_expectations)section.append(el('p',{class:'bad'},'⚠ Expected otherwise: '+f));
 return section;
}

function change(){
 const section=el('section',{id:'change','aria-labelledby':'change-h'},el('h2',{id:'change-h'},'What to change, and why'));
 layouts.forEach((l,i)=>{
  const said=d.advice.filter(a=>a.layout===l);
  section.append(el('h3',{},el('a',{href:'#'+idOf(i)},l)),said.length?
   el('ul',{class:'advice'},said.map(a=>el('li',{},a.op?el('b',{},a.op+': '):'',a.text))):el('p',{},'Nothing to find fault with.'))});
 return section;
}

function explained(l){
 return [el('h3',{},'What each operation does (predicted)'),table(['Operation','Plan','Partitions','Transactions','Scanned','Returned','Written','Request'],
  l.ops.map(o=>[o.op,(o.plan||o.kind)+(o.copy?' of copy '+o.copy:'')+(o.lookups?', then point reads':'')+(o.sorts?', client sorts':'')+(o.client_filters?', client filters':'')+
   (o.atomic?'':', not atomic'),num(o.partitions),num(o.transactions),num(o.scanned),o.client_filters?'–':num(o.returned),num(o.written),el('code',{},o.filter||'')]))];
}

function cost(l,rate){
 const rows=l.ops.map((o,op)=>{const t=figure(l.layout,rate,op,'transactions');
  return [o.op,num(t),num(t===null?t:t*1e6),num(figure(l.layout,rate,op,'bytes')),num(figure(l.layout,rate,op,'scanned')),num(figure(l.layout,rate,op,'written'))]});
 return [el('h3',{},'What it costs (measured)'),
  table(['Operation','Transactions each','For a million','Bytes answered','Scanned each','Written each'],rows),
  el('p',{},'A record takes '+num(l.stored_bytes)+' stored bytes with its copies, by the service\'s formula: '+
   num(l.stored_bytes*1e6/2**30)+' GiB for a million. Hottest partition: ',el('code',{},l.hottest_partition||'(empty key)'),
   d.arrival==='closed'?'; how fast a closed loop asks is not predicted.':' at '+num(l.hottest_rate)+
   ' units/s; all partitions: '+num(l.account_rate)+' units/s. A unit is a KiB of an entity, rounded up.')];
}

function layoutSection(l,i){
 const section=el('section',{id:idOf(i),'aria-labelledby':idOf(i)+'-h'},el('h2',{id:idOf(i)+'-h'},'Layout: '+l.layout),
  l.own_arrival?el('p',{},'Loaded in its own way: '+l.own_arrival):[],
  l.entities.map(e=>el('p',{},e.copy?'Copy '+e.copy+': ':'','PartitionKey ',el('code',{},e.pk),', RowKey ',el('code',{},e.rk),
   e.table==='Lab'?'':', table '+e.table)));
 const charts=el('div',{class:'charts'}),costs=el('div',{});
 section.append(charts,...explained(l),costs);
 return {section,draw(run,op){
  const cell=d.cells.find(c=>c.layout===l.layout&&c.rate===run.rate&&c.repeat===run.repeat);
  charts.replaceChildren();
  if(cell)charts.append(heatFigure(l,cell,run),timeFigure(l,cell,run),histogramFigure(l,cell,op,run));
  else charts.append(el('p',{},'This run is not in the result.'));
  costs.replaceChildren(...cost(l,run.rate))}};
}
)js";

}  // namespace partita::lab
