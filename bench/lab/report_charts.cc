#include "bench/lab/report_page.h"

namespace partita::lab {

// The heat maps are canvases: one shade for each column and row, rising in lightness, so that they can be
// read without colour; what was throttled is hatched. All else is SVG.
const char* const kReportCharts = R"js(
const ramp=[[8,10,30],[40,20,90],[120,30,110],[205,60,70],[245,150,40],[255,250,205]];
const shade=a=>{const s=Math.min(1,Math.max(0,a))*(ramp.length-1),k=Math.min(ramp.length-2,s|0);
 return 'rgb('+ramp[k].map((v,j)=>Math.round(v+(s-k)*(ramp[k+1][j]-v))).join(',')+')'};
const heatAt=(v,hot)=>v>0?Math.max(.08,1+Math.log10(v/hot)/3):0;
const kCellW=8,kCellH=14;
// The last column that there can be holds all that ended later, so that it is no rate.
const kRates=119;
const loads=cell=>{const t=cell.timeline;return t.entities.slice(0,kRates*t.rows).map((v,i)=>v+t.refused[i])};
const beginOf=(t,c)=>num(c*t.column_s)+' s'+(c<kRates?'':' and later');

function paintHeat(canvas,t,hot){
 const x=canvas.getContext('2d'),all=t.entities.map((v,i)=>v+t.refused[i]);
 all.forEach((v,i)=>{const c=Math.floor(i/t.rows),r=i%t.rows;
  x.fillStyle=shade(heatAt(v/t.column_s,hot));x.fillRect(c*kCellW,r*kCellH,kCellW,kCellH)});
 // Dark on light lines and light on dark ones: seen on every shade.
 t.refused.forEach((v,i)=>{if(!v)return;const c=Math.floor(i/t.rows)*kCellW,r=i%t.rows*kCellH;
  for(const [style,shift] of [['#000',0],['#fff',1]]){x.strokeStyle=style;x.lineWidth=1;x.beginPath();
   x.moveTo(c+shift,r+kCellH);x.lineTo(c+kCellW-1+shift,r);x.stroke()}});
}

function heatTable(l,t){
 const sums=l.key_rows.map((k,r)=>{let entities=0,refused=0;
  for(let i=r;i<t.entities.length;i+=t.rows){entities+=t.entities[i];refused+=t.refused[i]}return {k,entities,refused}});
 const all=sums.reduce((a,s)=>a+s.entities+s.refused,0)||1;
 return {sums,rows:sums.map(s=>[s.k||'(empty)',num(s.entities),num(s.refused),percent((s.entities+s.refused)/all)])};
}

const lazily=(summary,make)=>{const e=el('details',{},el('summary',{},summary));
 e.addEventListener('toggle',()=>{if(e.open&&e.children.length===1)e.append(make())});return e};

function heatFigure(l,cell,run){
 const t=cell.timeline,columns=t.due.length,{sums,rows}=heatTable(l,t);
 const hottest=sums.reduce((best,s,i)=>s.entities+s.refused>sums[best].entities+sums[best].refused?i:best,0);
 const canvas=el('canvas',{width:columns*kCellW,height:t.rows*kCellH,tabindex:0,role:'img','data-layout':l.layout,
  style:'height:'+t.rows*kCellH+'px','aria-label':'Load of '+l.layout+' by time, across, and key range, down. Most: from '+
  l.key_rows[hottest]+', '+rows[hottest][3]+'. Arrow keys read single cells.'});
 const at=el('div',{class:'at','aria-live':'polite'},'Most load: from “'+l.key_rows[hottest]+'”, '+rows[hottest][3]+
  ' of all. Point at a cell, or focus the picture and use the arrow keys.');
 let column=0,row=hottest;
 const tell=()=>{const i=column*t.rows+row;
  const [time,each]=column<kRates?[t.column_s,'/s']:[1,''];
  at.textContent=beginOf(t,column)+', from “'+l.key_rows[row]+'”: '+num(t.entities[i]/time)+' units'+each+', '+
   num(t.refused[i]/time)+' refused'+each};
 canvas.addEventListener('mousemove',e=>{column=Math.min(columns-1,Math.max(0,e.offsetX/canvas.clientWidth*columns|0));
  row=Math.min(t.rows-1,Math.max(0,e.offsetY/canvas.clientHeight*t.rows|0));tell()});
 canvas.addEventListener('keydown',e=>{const step={ArrowLeft:[-1,0],ArrowRight:[1,0],ArrowUp:[0,-1],ArrowDown:[0,1]}[e.key];
  if(!step)return;e.preventDefault();column=Math.min(columns-1,Math.max(0,column+step[0]));
  row=Math.min(t.rows-1,Math.max(0,row+step[1]));tell()});
 paintHeat(canvas,t,run.hot);
 const key=el('canvas',{width:160,height:12,role:'img','aria-label':'Shades from dark, little, to light, much'}),k=key.getContext('2d');
 for(let i=0;i<160;++i){k.fillStyle=shade(i/159);k.fillRect(i,0,1,12)}
 return el('figure',{},el('figcaption',{},'Where the load lay. Down: PartitionKeys, a row each, or where there are more than 32 ranges of about as many records. Across: '+
   num(columns*t.column_s)+' s. Load is units, the KiB of an entity, rounded up, and refused requests.'+ofRun(run)),
  el('div',{class:'heat'},el('ol',{'aria-hidden':'true'},l.key_rows.map((r,i)=>el('li',{class:i===hottest?'hot':undefined,title:r},r||'(empty)'))),canvas),
  el('div',{class:'key'},num(run.hot/1000)+'/s',key,num(run.hot)+'/s, on one scale for all layouts; lines: some were throttled'),at,
  lazily('Key ranges as a table',()=>table(['From key','Units','Refused','Share of load'],rows)));
}

// One panel of a chart over time: a frame, lines across at `ticks`, and a title.
function panel(out,title,top,height,ticks,y,text){
 out.append(svg('text',{x:8,y:top-6},title));
 for(const v of ticks)out.append(svg('path',{class:'grid',d:'M60 '+y(v)+'H900'}),svg('text',{x:54,y:y(v)+4,'text-anchor':'end'},text(v)));
}

// Of which run a chart is, also where it is printed.
const ofRun=run=>' – '+run.rate+', run '+(run.repeat+1);
const wide=chart=>el('div',{class:'scroll'},chart);

function timeFigure(l,cell,run){
 const t=cell.timeline,n=t.due.length,seconds=n*t.column_s,x=c=>60+840*c/n;
 const out=svg('svg',{class:'chart',viewBox:'0 0 960 390',role:'img','aria-label':'Latency over time of '+l.layout+
  ', with what was throttled and what waited beneath. Longest '+ms(Math.max(...t.max_ms))+'.'});
 const warm=Math.min(840,840*d.warmup_s/seconds);
 if(warm>0)out.append(svg('rect',{class:'warm',x:60,y:18,width:warm,height:346}),svg('text',{x:64,y:361},'warm-up'));
 const shortest=Math.min(.01,...t.p50_ms.filter(v=>v>0)),low=10**Math.floor(Math.log10(shortest)+1e-9),high=Math.max(1,...t.max_ms)*1.2,y=v=>180-160*Math.log(Math.max(v,low)/low)/Math.log(high/low),ticks=[];
 for(let v=low;v<=high;v*=10)ticks.push(+v.toPrecision(3));
 panel(out,'latency, from when due',18,160,ticks,y,ms);
 // Three names at the right edge, a line apart at least.
 let above=-99;
 for(const name of ['max','p99','p50']){const v=t[name+'_ms'];
  const points=v.map((v,c)=>t.completed[c]?[x(c+.5),y(v)]:null);
  out.append(svg('path',{class:'l '+name,d:points.map((p,c)=>p?(c&&points[c-1]?'L':'M')+p[0].toFixed(1)+' '+p[1].toFixed(1)+(points[c+1]||c&&points[c-1]?'':'h1'):'').join('')}));
  const last=points.filter(p=>p).pop();if(last){above=Math.max(last[1]+4,above+12);out.append(svg('text',{x:906,y:above},name))}}
 const most=Math.max(...t.throttled.slice(0,kRates).map(v=>v/t.column_s),1),yt=v=>260-50*Math.min(v/most,1);
 panel(out,'throttled operations a second',205,50,[0,most],yt,num);
 t.throttled.forEach((v,c)=>{if(v)out.append(svg('rect',{class:'bar',x:x(c).toFixed(1),y:yt(v/t.column_s).toFixed(1),
  width:(840/n*.9).toFixed(1),height:(260-yt(v/t.column_s)).toFixed(1)}))});
 let sum=0;const waits=t.due.map((v,c)=>Math.max(0,sum+=v-(t.ended?t.ended[c]:t.completed[c]+t.throttled[c]))),deep=Math.max(...waits,1),yw=v=>350-55*v/deep;
 panel(out,'due and not ended',290,55,[0,deep],yw,num);
 out.append(svg('path',{class:'l',d:waits.map((v,c)=>(c?'L':'M')+x(c+.5).toFixed(1)+' '+yw(v).toFixed(1)).join('')}));
 for(let i=0;i<=4;++i)out.append(svg('text',{x:60+210*i,y:378,'text-anchor':'middle'},num(seconds*i/4)+' s'));
 return el('figure',{},el('figcaption',{},'Latency over time, with throttling and backlog beneath'+ofRun(run)),wide(out),
  lazily('As a table',()=>table(['From','Due','Completed','Throttled','p50','p99','Longest'],
   t.due.map((v,c)=>[beginOf(t,c),num(v),num(t.completed[c]),num(t.throttled[c]),ms(t.p50_ms[c]),ms(t.p99_ms[c]),ms(t.max_ms[c])]))));
}

function histogramFigure(l,cell,op,run){
 const bars=new Map();let all=0;
 cell.ops.forEach((o,i)=>{if(op>=0&&op!==i)return;for(const [us,count] of o.latency_us_counts){
  const b=Math.floor(Math.log2(Math.max(us,1))*4);bars.set(b,(bars.get(b)||0)+count);all+=count}});
 const name=op<0?'all operations':ops[op],caption='How long operations took: '+name;
 const rows=cell.ops.map(o=>[o.op,...['p50_ms','p90_ms','p99_ms','p999_ms','max_ms','service_p99_ms'].map(m=>o.throughput>0?ms(o[m]):'–')]);
 const percentiles=table(['Operation','p50','p90','p99','p99.9','Longest','p99 once begun'],rows);
 if(!all)return el('figure',{},el('figcaption',{},caption+': none completed'+ofRun(run)),percentiles);
 const first=Math.min(...bars.keys()),last=Math.max(first+1,...bars.keys()),most=Math.max(...bars.values());
 const x=b=>60+840*(b-first)/(last-first+1),h=v=>120*v/most;
 const out=svg('svg',{class:'chart',viewBox:'0 0 960 170',role:'img','aria-label':caption+' of '+l.layout+'; '+num(all)+' completed'});
 out.append(svg('path',{class:'grid',d:'M60 140H900M60 20H900'}),svg('text',{x:54,y:24,'text-anchor':'end'},num(100*most/all)+' %'),
  svg('text',{x:54,y:144,'text-anchor':'end'},'0'));
 for(const [b,v] of bars)out.append(svg('rect',{class:'count',x:x(b).toFixed(1),y:(140-h(v)).toFixed(1),
  width:Math.max(1,840/(last-first+1)-1).toFixed(1),height:Math.max(.8,h(v)).toFixed(1)}));
 const every=Math.max(4,Math.ceil((last-first)/10/4)*4);
 const named=[];for(let b=Math.ceil(first/4)*4;b<=last+1;b+=every)named.push(b);
 for(const b of named.length?named:[first,last+1])out.append(svg('text',{x:x(b),y:158,'text-anchor':'middle'},ms(2**(b/4)/1000)));
 return el('figure',{},el('figcaption',{},caption+' (logarithmic; share of '+num(all)+')'+ofRun(run)),wide(out),percentiles);
}

function start(){
 head();
 const main=document.getElementById('main'),parts=d.explain.map(layoutSection);
 const runs=[];for(const rate of rates)for(let repeat=0;repeat<d.repeats;++repeat)runs.push({rate,repeat,hot:Math.max(1,
  ...d.cells.filter(c=>c.rate===rate&&c.repeat===repeat).map(c=>loads(c).reduce((a,b)=>Math.max(a,b),0)/c.timeline.column_s))});
 const run=el('select',{id:'run'},runs.map((r,i)=>el('option',{value:i},r.rate+', run '+(r.repeat+1)))),
  op=el('select',{id:'op'},el('option',{value:-1},'all operations'),ops.map((o,i)=>el('option',{value:i},o)));
 run.value=runs.length-d.repeats;
 const draw=()=>parts.forEach(p=>p.draw(runs[run.value],+op.value));
 run.addEventListener('change',draw);op.addEventListener('change',draw);
 main.append(verdict(),change(),el('div',{class:'runs'},el('label',{},'Run shown ',run),' ',el('label',{},'Histograms of ',op)),...parts.map(p=>p.section));
 draw();
 requestAnimationFrame(()=>setTimeout(()=>{document.documentElement.dataset.firstDrawMs=Math.round(performance.now())}));
}
start();
// What goes wrong from here on, as in a script that an extension put into the page, takes no drawn page away.
removeEventListener('error',sayUndrawable);
)js";

}  // namespace partita::lab
