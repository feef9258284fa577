"use strict";
// The parts of every page. Names and values are set as text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");

function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function findingOf(finding) {
  const node = make("div", "finding");
  node.append(make("b", "", `${finding.severity} ${finding.code}`), ` ${finding.subject}: ${finding.message}`);
  const list = make("dl");
  for (const key of ["evidence", "source", "fix"]) {
    if (finding[key]) list.append(make("dt", "", key), make("dd", "", finding[key]));
  }
  node.append(list);
  return node;
}

