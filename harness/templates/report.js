"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const episodes = JSON.parse(byId("episodes").textContent);
  const systems = JSON.parse(byId("systems").textContent);
  const WORDS = {
    best: "best", fine: "not listed as best, nothing lost", blunder: "? blunder", fatal: "?? into a dead end",
    invalid: "no valid action", lost: "in a dead end", unknown: "not judged",
  };
  const COLOURS = {
    best: "--good", fine: "--good", blunder: "--warn", fatal: "--bad", invalid: "--other", lost: "--quiet", unknown: "--quiet",
  };
  const MISTAKES = ["blunder", "fatal"];
  let episode = null; // the one that is shown
  let at = 0; // its turn; the number of turns is the end

  const make = (tag, text, name) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    return made;
  };
  const number = (value) => (Math.abs(value) >= 10 || Number.isInteger(value) ? String(Math.round(value * 10) / 10) : value.toFixed(2));
  const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;
  const before = (turn) => (turn === 0 ? episode.start : episode.turns[turn - 1].note);

  function distance(note) {
    if (!note) return "not known";
    if (note.dead) return "no win is possible";
    if (note.cost === null) return note.value === null ? "not known" : `value ${number(note.value)}`;
    return `${plural(note.cost, "turn")} to a win${note.exact || note.cost === 0 ? "" : " (estimate)"}`;
  }

  function title(each) {
    const best = each.start && each.start.cost !== null ? `, best ${number(each.start.cost)}` : "";
    const mistakes = each.mistakes ? `, ${plural(each.mistakes, "blunder")}` : "";
    return `seed ${each.seed}, rollout ${each.rollout}: ${each.result.replaceAll("_", " ")} after ${plural(each.turns.length, "turn")}${best}${mistakes}`;
  }

  function fillEnvironments() {
    for (const name of new Set(episodes.map((each) => each.environment)))
      byId("environment").append(new Option(name.replace("agentgym/", ""), name));
  }

  const KEEP = {
    all: () => true, won: (each) => each.success, not: (each) => !each.success, mistakes: (each) => each.mistakes > 0,
  };

  function fillEpisodes() {
    const name = byId("environment").value;
    const list = byId("episode");
    list.replaceChildren();
    episodes.forEach((each, index) => {
      if (each.environment === name && KEEP[byId("filter").value](each)) list.append(new Option(title(each), index));
    });
    byId("none").hidden = list.length > 0;
    byId("stage").hidden = list.length === 0;
    if (list.length) show(Number(list.value), 0);
  }

  function show(index, turn) {
    episode = episodes[index];
    byId("at").max = episode.turns.length;
    drawStrip();
    go(turn);
  }

  function drawStrip() {
    const strip = byId("strip");
    const turns = episode.turns.length;
    const costs = [...Array(turns + 1).keys()].map((turn) => (before(turn) ? before(turn).cost : null));
    const most = Math.max(1, ...costs.filter((cost) => cost !== null));
    const known = costs.some((cost) => cost !== null);
    strip.setAttribute("viewBox", `0 0 ${turns + 1} 100`);
    strip.replaceChildren();
    costs.forEach((cost, turn) => {
      const note = before(turn);
      const dead = note && note.dead;
      const height = dead || cost === null ? 46 : 8 + (82 * cost) / most;
      const colour = turn < turns ? COLOURS[episode.turns[turn].verdict] : episode.success ? "--good" : dead ? "--bad" : "--quiet";
      strip.append(bar(turn + 0.08, 100 - height, 0.84, height, `var(${colour})`));
    });
    const cursor = bar(0, 0, 1, 100, "var(--accent)");
    cursor.id = "cursor";
    cursor.setAttribute("fill-opacity", "0.22");
    strip.append(cursor);
    byId("strip-legend").textContent = known
      ? "A bar for each turn, as high as the win is far. Click one to go there."
      : "A bar for each turn. Click one to go there.";
  }

  function bar(x, y, width, height, fill) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of Object.entries({ x, y, width, height })) made.setAttribute(name, value);
    made.style.fill = fill;
    return made;
  }

  function go(turn) {
    at = Math.min(Math.max(turn, 0), episode.turns.length);
    const over = at === episode.turns.length;
    byId("at").value = at;
    byId("cursor").setAttribute("x", at);
    for (const id of ["first", "back"]) byId(id).disabled = at === 0;
    for (const id of ["on", "last"]) byId(id).disabled = over;
    byId("blunder").disabled = nextMistake() < 0;
    where(over);
    board(over);
    told(over);
    prompt(over);
    oracle(over);
    reply(over);
    const index = episodes.indexOf(episode);
    history.replaceState(null, "", `#replay-${index}-${at}`);
  }

  function where(over) {
    const line = byId("where");
    const count = episode.turns.length;
    if (over) {
      line.replaceChildren(`End after ${plural(count, "turn")}`, make("span", episode.result.replaceAll("_", " "), `tag ${episode.success ? "best" : "fatal"}`));
      return;
    }
    const verdict = episode.turns[at].verdict;
    line.replaceChildren(`Turn ${at + 1} of ${count}`, make("span", WORDS[verdict], `tag ${verdict}`));
  }

  function prompt(over) {
    const turn = over ? null : episode.turns[at];
    byId("prompt-box").hidden = !turn || !turn.asked;
    if (byId("prompt-box").hidden) return;
    const [sent, dropped] = turn.sent;
    const older = dropped ? ` ${plural(dropped, "older turn")} no longer fitted.` : "";
    byId("between").textContent = sent || dropped ? `Then ${plural(sent, "earlier turn")}, each with its reply.${older}` : "";
    byId("system").textContent = systems[episode.system];
    byId("prompt").textContent = `Turn ${at}\n${turn.observation}\n\n${turn.asked}`;
  }

  function board(over) {
    const shown = byId("board");
    const now = over ? episode.final : episode.turns[at].observation;
    if (!now) {
      shown.textContent = "This record does not hold the board after the last action.";
      return;
    }
    const was = at > 0 ? episode.turns[at - 1].observation : now;
    const [rows, old] = [now.split("\n"), was.split("\n")];
    const alike = rows.length === old.length;
    shown.replaceChildren();
    rows.forEach((row, index) => {
      mark(shown, row, alike && row.length === old[index].length ? old[index] : row);
      if (index < rows.length - 1) shown.append("\n");
    });
  }

  function mark(into, row, old) {
    let plain = "";
    for (let i = 0; i < row.length; i += 1) {
      if (row[i] === old[i]) plain += row[i];
      else {
        into.append(plain, make("mark", row[i]));
        plain = "";
      }
    }
    into.append(plain);
  }

  function told(over) {
    const error = over || at === 0 ? "" : episode.turns[at - 1].error;
    byId("told").textContent = error;
    byId("told-box").hidden = !error;
  }

  function oracle(over) {
    const into = byId("oracle");
    const note = before(at);
    into.replaceChildren(make("div", `Here: ${distance(note)}.`));
    if (over) {
      const reached = episode.milestones[1] ? `, milestones ${episode.milestones.join(" of ")}` : "";
      into.append(make("div", `Score ${number(episode.score)}, progress ${number(episode.progress)}${reached}.`));
      if (episode.error) into.append(make("div", episode.error));
      return;
    }
    const turn = episode.turns[at];
    if (note && note.best.length) into.append(moves(note.best, turn.action));
    into.append(make("div", `After the action: ${distance(turn.note)}.${lost(turn)}`));
    const gained = turn.milestones ? ` ${plural(turn.milestones, "new milestone")}.` : "";
    if (turn.score !== null) into.append(make("div", `Score ${number(turn.score)}, progress ${number(turn.progress)}.${gained}`));
  }

  function moves(best, action) {
    const row = make("div", undefined, "moves");
    row.append(make("span", best.length === 1 ? "Best:" : `Best (${best.length}):`));
    const most = 24;
    for (const each of best.slice(0, most)) row.append(make("span", each, each === action ? "move chosen" : "move"));
    if (best.length > most) row.append(make("span", `and ${best.length - most} more`));
    return row;
  }

  function lost(turn) {
    if (turn.verdict === "fatal") return " The win is lost.";
    if (turn.verdict !== "blunder" || turn.loss === null) return "";
    return turn.note && turn.note.cost === null ? ` ${number(turn.loss)} in value lost.` : ` ${plural(turn.loss, "turn")} lost.`;
  }

  function reply(over) {
    const turn = over ? null : episode.turns[at];
    byId("thought-box").hidden = !turn || !turn.reasoning;
    byId("thought").textContent = turn ? turn.reasoning : "";
    byId("reply").textContent = turn ? turn.reply : "";
    byId("reply").hidden = !turn || (!turn.reply && turn.calls.length > 0);
    byId("calls-box").hidden = !turn || !turn.calls.length;
    byId("calls").textContent = turn ? turn.calls.map(([name, given]) => `${name}(${given})`).join("\n") : "";
    byId("size").textContent = turn ? size(turn) : "";
    action(turn);
  }

  function size(turn) {
    const [sent, got] = turn.tokens;
    const parts = [];
    if (sent !== null) parts.push(`${sent.toLocaleString("en")} tokens sent`);
    parts.push(got === null ? plural(turn.reply.length, "character") : plural(got, "token"));
    if (turn.cut) parts.push("cut at the limit");
    if (turn.seconds >= 0.05) parts.push(`${number(turn.seconds)} s`);
    return parts.join(", ");
  }

  function action(turn) {
    const into = byId("action");
    into.replaceChildren();
    if (!turn) return into.append("The episode is over.");
    if (turn.action) into.append(make("code", turn.action), " ", make("span", WORDS[turn.verdict], `tag ${turn.verdict}`));
    else into.append(turn.attempt ? "None; tried " : "None. ", ...(turn.attempt ? [make("code", turn.attempt), ": "] : []), turn.error);
    return undefined;
  }

  function nextMistake() {
    return episode.turns.findIndex((turn, index) => index > at && MISTAKES.includes(turn.verdict));
  }

  function toEpisode(step) {
    const list = byId("episode");
    const next = list.selectedIndex + step;
    if (next < 0 || next >= list.length) return;
    list.selectedIndex = next;
    show(Number(list.value), 0);
  }

  function toBlunder() {
    const next = nextMistake();
    if (next >= 0) go(next);
  }

  const KEYS = {
    ArrowLeft: () => go(at - 1), ArrowRight: () => go(at + 1), n: () => toEpisode(1), p: () => toEpisode(-1), b: toBlunder,
  };

  function onKey(event) {
    const field = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
    if (field || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key] || !episode) return;
    event.preventDefault();
    KEYS[event.key]();
  }

  function fromAddress() {
    const found = location.hash.match(/^#replay-(\d+)-(\d+)$/);
    if (!found || !episodes[Number(found[1])]) return;
    byId("environment").value = episodes[Number(found[1])].environment;
    fillEpisodes();
    byId("episode").value = found[1];
    show(Number(found[1]), Number(found[2]));
    byId("replay").scrollIntoView();
  }

  byId("first").onclick = () => go(0);
  byId("back").onclick = () => go(at - 1);
  byId("on").onclick = () => go(at + 1);
  byId("last").onclick = () => go(episode.turns.length);
  byId("blunder").onclick = toBlunder;
  byId("at").oninput = () => go(Number(byId("at").value));
  byId("environment").onchange = fillEpisodes;
  byId("filter").onchange = fillEpisodes;
  byId("episode").onchange = () => show(Number(byId("episode").value), 0);
  byId("strip").onclick = (event) => {
    const box = byId("strip").getBoundingClientRect();
    go(Math.floor(((event.clientX - box.left) / box.width) * (episode.turns.length + 1)));
  };
  document.addEventListener("keydown", onKey);
  const address = location.hash;
  byId("viewer").hidden = false;
  fillEnvironments();
  if (episodes.length) {
    fillEpisodes();
    history.replaceState(null, "", address || location.pathname);
    fromAddress();
  } else {
    byId("none").hidden = false;
    byId("stage").hidden = true;
  }
})();
