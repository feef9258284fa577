// A build: its steps, Ninja's tasks on a time line, the slowest files, and the findings. Names are set as text.
const SVG = "http://www.w3.org/2000/svg";

function seconds(number) {
  if (number < 60) return `${Math.round(number * 10) / 10} s`;
  const whole = Math.round(number);
  return whole < 3600 ? `${Math.floor(whole / 60)} min ${whole % 60} s` :
    `${Math.floor(whole / 3600)} h ${Math.floor(whole / 60) % 60} min`;
}

function table(head, rows) {
  const node = make("table");
  const top = make("tr");
  for (const [text, className] of head) top.append(make("th", className, text));
  node.append(top);
  for (const row of rows) {
    const line = make("tr");
    row.forEach((text, number) => line.append(make("td", head[number][1], text)));
    node.append(line);
  }
  return node;
}

function shape(tag, values, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(values)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

// The tasks in lanes: a task takes the first lane that is free when it begins, as Ninja's jobs do.
function timeline(tasks) {
  const end = Math.max(...tasks.map((task) => task[2]), 1);
  const lanes = [];
  const node = shape("svg", {});
  const wide = 1200;
  for (const [name, first, last] of [...tasks].sort((one, other) => one[1] - other[1])) {
    let lane = lanes.findIndex((until) => until <= first);
    if (lane < 0) lane = lanes.push(0) - 1;
    lanes[lane] = last;
    const bar = shape("rect", { x: (first / end) * wide, y: 4 + lane * 12,
      width: Math.max(((last - first) / end) * wide - 0.3, 0.5), height: 10 });
    bar.append(shape("title", {}, `${name}: ${seconds((last - first) / 1000)}`));
    node.append(bar);
  }
  const high = 8 + lanes.length * 12;
  for (let part = 0; part <= 4; part += 1) {
    const at = (part / 4) * wide;
    node.append(shape("text", { x: at, y: high + 12, "text-anchor": ["start", "middle", "middle", "middle", "end"][part] },
      seconds((end * part) / 4000)));
  }
  node.setAttribute("viewBox", `0 0 ${wide} ${high + 18}`);
  node.id = "timeline";
  return node;
}

const failed = data.steps.find((step) => !step.ok);
const total = data.steps.reduce((sum, step) => sum + step.seconds, 0);
const end = data.ended ? "all steps ended well" : "it did not end: it was interrupted, or an error that it printed stopped it";
const facts = [failed ? `failed in step ${failed.name}` : end, `took ${seconds(total)}`];
if (data.cache) facts.push(`compile cache: ${data.cache.hits} hits, ${data.cache.misses} misses`);
if (data.largest) facts.push(`largest process: ${(data.largest / 2 ** 30).toFixed(1)} GiB`);
const state = make("p", "", facts.join("; "));
state.id = "state";
page.replaceChildren(state, make("p", "faint", `${data.checkout}; build folder ${data.folder}`));

if (data.findings.length) {
  const node = make("section", "detail");
  node.id = "findings";
  node.append(make("h2", "", failed ? "Why it failed" : "Findings"));
  for (const finding of data.findings) node.append(findingOf(finding));
  if (data.log) node.append(make("p", "faint", `log: ${data.log}`));
  page.append(node);
}

page.append(make("h2", "", "Steps"), table([["step", ""], ["", ""], ["time", "number"], ["", ""]],
  data.steps.map((step) => [step.name, step.ok ? "ok" : "failed", seconds(step.seconds), step.lines.join("\n")])));
if (data.tasks.length) {
  const shown = data.tasks.length < data.count ? `, the longest ${data.tasks.length} of ${data.count}` : "";
  page.append(make("h2", "", `Ninja's tasks${shown}`), timeline(data.tasks));
  page.append(make("h2", "", "The slowest"), table([["time", "number"], ["output", ""]],
    data.tasks.slice(0, 30).map(([name, first, last]) => [seconds((last - first) / 1000), name])));
}
