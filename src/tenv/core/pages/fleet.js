// The machines of a fleet: targets down, equal machines across. Only the columns in view exist, so that 10,000 of them
// scroll and filter at once. Every text of a report is set as text, never as markup.

function field(label, control) {
  const node = make("label", "", label);
  node.append(control);
  return node;
}

function choice(options) {
  const node = make("select");
  for (const [value, text] of options) {
    const option = make("option", "", text);
    option.value = value;
    node.append(option);
  }
  return node;
}

const search = make("input");
search.type = "search";
search.id = "search";
search.placeholder = "machine, GPU, driver or code";
const target = choice([["", "any target"], ...data.targets.map((name, number) => [String(number), name])]);
target.id = "target";
const answer = choice([["", "any answer"], ["good", "builds and runs"], ["part", "one of both"], ["bad", "neither"],
  ["unknown", "not known"]]);
answer.id = "answer";
const controls = make("div", "controls");
controls.append(field("Find", search), field("Target", target), field("Answer", answer));
const counted = make("p", "faint");
counted.id = "counted";
const legend = make("p", "legend");
for (const [name, text] of [["good", "builds and runs"], ["part", "builds or runs"], ["bad", "neither"],
  ["unknown", "not known"]]) legend.append(make("span", name, text));

const names = make("div", "names");
names.append(make("span", "head faint", "target"));
for (const name of data.targets) names.append(make("span", "name", name));
const scroll = make("div", "scroll");
const space = make("div");
scroll.append(space);
const grid = make("div", "grid");
grid.append(names, scroll);
const detail = make("section", "detail");
detail.id = "detail";
detail.hidden = true;
page.replaceChildren(make("p", "faint", data.summary), controls, legend, counted, grid, detail);
if (data.broken.length) {
  page.append(make("h2", "", "Reports that can't be read"));
  for (const [source, problem] of data.broken) page.append(make("p", "broken", `${source}: ${problem}`));
}

for (const column of data.columns) {
  const codes = column.cells.flatMap((cell) => data.cells[cell].codes);
  column.text = [...column.machines, ...column.gpus, column.driver, ...new Set(codes)].join("\n").toLowerCase();
}

let shown = data.columns;
let chosen = null;
const drawn = new Map();

function width() {
  const probe = make("div", "column");
  space.append(probe);
  const found = probe.getBoundingClientRect().width;
  probe.remove();
  return found || 176;
}

function draw() {
  const wide = width();
  space.style.width = `${shown.length * wide}px`;
  space.style.height = `${names.getBoundingClientRect().height}px`;
  const first = Math.max(0, Math.floor(scroll.scrollLeft / wide) - 2);
  const last = Math.min(shown.length, first + Math.ceil(scroll.clientWidth / wide) + 5);
  for (const [column, node] of drawn) {
    const place = shown.indexOf(column, first);
    if (place < first || place >= last) {
      node.remove();
      drawn.delete(column);
    }
  }
  for (let place = first; place < last; place += 1) {
    const column = shown[place];
    const node = drawn.get(column) || columnOf(column);
    node.style.left = `${place * wide}px`;
    if (!drawn.has(column)) space.append(node);
    drawn.set(column, node);
  }
}

function columnOf(column) {
  const node = make("div", "column");
  const head = make("button", "head");
  const single = column.machines.length === 1;
  head.append(make("b", "", single ? column.machines[0] : found(column) || many(column.machines.length, "machine")));
  head.append(make("small", "", column.gpus.join(", ") || "no GPU"), make("small", "", `driver ${column.driver}`));
  head.title = column.machines.slice(0, 30).join("\n");
  head.addEventListener("click", () => open(column, null, head));
  node.append(head);
  column.cells.forEach((number, row) => {
    const cell = data.cells[number];
    const button = make("button", `cell ${cell.kind}`, cell.word);
    button.append(make("small", "", cell.codes.join(" ")));
    button.title = `${data.targets[row]}: ${cell.word} ${cell.codes.join(" ")}`;
    button.addEventListener("click", () => open(column, row, button));
    node.append(button);
  });
  return node;
}

function many(number, name) {
  return `${number} ${name}${number === 1 ? "" : "s"}`;
}

// Return the first machine that the search names, and how many equal ones there are.
function found(column) {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const name = words.length && column.machines.find((one) => words.some((word) => one.toLowerCase().includes(word)));
  return name && `${name} and ${column.machines.length - 1} equal`;
}

function open(column, row, button) {
  chosen?.classList.remove("chosen");
  chosen = button;
  button.classList.add("chosen");
  detail.hidden = false;
  const single = column.machines.length === 1;
  const who = single ? column.machines[0] : `${column.machines.length} equal machines`;
  detail.replaceChildren(make("h2", "", row === null ? who : `${data.targets[row]} on ${who}`));
  detail.append(make("p", "", `${column.gpus.join(", ") || "no GPU"}; driver ${column.driver}`));
  if (row !== null) {
    const cell = data.cells[column.cells[row]];
    detail.append(make("p", "", `answer: ${cell.word}`));
    if (!cell.findings.length) detail.append(make("p", "faint", "no findings"));
    for (const number of cell.findings) detail.append(findingOf(data.findings[number]));
  }
  if (!single || row === null) {
    detail.append(make("h2", "", "Machines"));
    const list = make("div", "machines");
    for (const name of column.machines) list.append(make("div", "", name));
    detail.append(list);
  }
}

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = target.value === "" ? data.targets.map((_, number) => number) : [Number(target.value)];
  shown = data.columns.filter((column) => words.every((word) => column.text.includes(word)) &&
    (!answer.value || rows.some((row) => data.cells[column.cells[row]].kind === answer.value)));
  const machines = shown.reduce((sum, column) => sum + column.machines.length, 0);
  counted.textContent = `${many(machines, "machine")} in ${many(shown.length, "column")} of equal machines`;
  scroll.scrollLeft = 0;
  space.replaceChildren();
  drawn.clear();
  draw();
}

search.addEventListener("input", filter);
target.addEventListener("change", filter);
answer.addEventListener("change", filter);
scroll.addEventListener("scroll", () => requestAnimationFrame(draw));
addEventListener("resize", draw);
filter();
