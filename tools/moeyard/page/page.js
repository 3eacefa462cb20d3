// Moeyard. SPDX-License-Identifier: Apache-2.0
// Draws the report from the JSON in the page, which `moeyard report` has checked. Text from it is only ever set as text.
"use strict";
(() => {
  window.addEventListener("error", (event) => { document.body.dataset.error = event.message; });
  const run = JSON.parse(document.getElementById("run").textContent);
  const ranks = run.setup.ranks, load = run.load;
  const kMostBars = 64;  // ranks in the timeline

  // --- Words and numbers ---
  const at = (id) => document.getElementById(id);
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const count = (n) => n.toLocaleString("en-US", {maximumFractionDigits: 0});
  const bytesText = (n) => {
    for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) if (n >= size) return (n / size).toFixed(1) + " " + unit;
    return n + " B";
  };
  const msText = (ms) => ms.toFixed(ms < 10 ? 3 : 1) + " ms";
  const sum = (list) => list.reduce((a, b) => a + b, 0);
  const most = (list) => list.reduce((a, b) => Math.max(a, b), 0);
  const add = (parent, tag, text, name) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    parent.appendChild(made);
    return made;
  };
  const fillTable = (table, head, rows) => {
    const line = add(add(table, "thead"), "tr");
    for (const cell of head) add(line, "th", cell);
    const body = add(table, "tbody");
    for (const row of rows) {
      const of = add(body, "tr");
      for (const cell of row) add(of, "td", cell);
    }
  };

  // --- What is shown ---
  const afd = run.setup.afd;
  const firstExpertRank = afd ? afd.attention_workers : 0, expertRanks = afd ? afd.ffn_workers : ranks;
  const instances = load.expert_of_instance.length, slots = instances / expertRanks;
  const rankOfInstance = (p) => firstExpertRank + Math.floor(p / slots);
  const busy = load.rows_of_rank.slice(firstExpertRank);
  const mean = sum(busy) / expertRanks;
  const travelling = sum(run.bytes_from_rank_to_rank.map((row, r) => sum(row) - row[r]));
  const passes = run.layer_ms_of_pass.length;
  // The pass whose time is nearest to the median of all.
  const pass = run.layer_ms_of_pass.reduce(
      (best, ms, i, all) => Math.abs(ms - run.layer_ms) < Math.abs(all[best] - run.layer_ms) ? i : best, 0);

  // Ranks meet before dispatch and before combine: these begin when the last one is there. Workers of two kinds do not.
  const timeline = () => {
    const bars = run.phases.map(() => []);
    const now = new Array(ranks).fill(0);
    run.phases.forEach((phase, i) => {
      if (!afd && (phase.name === "dispatch" || phase.name === "combine")) now.fill(most(now));
      phase.ms_of_pass_and_rank[pass].forEach((ms, rank) => {
        bars[i].push([now[rank], now[rank] + ms]);
        now[rank] += ms;
      });
    });
    const order = now.map((end, rank) => ({end, rank})).sort((a, b) => b.end - a.end).slice(0, kMostBars);
    return {bars, shown: order.map((one) => one.rank).sort((a, b) => a - b)};
  };

  // Rows by rank with tokens and instance; files of older versions have only what each instance got.
  const heat = load.rows_from_rank_to_instance
      ? {matrix: load.rows_from_rank_to_instance, wide: instances,
         say: (r, p) => `rank ${r} to expert ${load.expert_of_instance[p]}` +
              (instances > run.model.experts ? ` (instance ${p})` : "") + ` on rank ${rankOfInstance(p)}`,
         about: "Each line is a rank with tokens, each column an expert" + (instances > run.model.experts ? " instance" : "") +
              ", in the order in which they lie on the ranks."}
      : {matrix: Array.from({length: expertRanks}, (_, r) => load.rows_of_instance.slice(r * slots, (r + 1) * slots)), wide: slots,
         say: (r, slot) => `rank ${r + firstExpertRank}, expert ${load.expert_of_instance[r * slots + slot]}`,
         about: "Each line is a rank, each column one of its experts."};

  const writeText = () => {
    const name = `${run.model.model_type}, layer ${run.model.layer}`;
    at("title").textContent = name;
    at("facts").textContent =
        `${count(run.setup.tokens)} tokens in ${run.setup.dtype}, ${run.model.experts_per_token} of ${run.model.experts} experts each; hidden ` +
        `${run.model.hidden}, intermediate ${run.model.intermediate}; ` +
        (afd ? `${afd.attention_workers} attention workers and ${afd.ffn_workers} FFN workers` : `${ranks} rank${ranks === 1 ? "" : "s"}`) +
        (run.setup.placement ? `; placement ${run.setup.placement}` : "");
    const tile = (value, text, className) => {
      const box = add(at("tiles"), "div", undefined, "tile");
      add(box, "b", value, className);
      add(box, "span", text);
    };
    const passed = run.verdict === "pass";
    tile(passed ? "PASS" : "FAIL", passed ? "every value within its limit" : "values beyond their limit", passed ? "good" : "bad");
    tile(count(sum(busy)), "rows");
    tile(mean > 0 ? (most(busy) / mean).toFixed(2) + " x" : "-", "the busiest rank, of the mean");
    tile(bytesText(travelling), "between ranks in dispatch");
    tile(msText(run.layer_ms), passes > 1 ? `a pass, the median of ${passes}` : "one cold pass");
    for (const warning of run.warnings) add(at("warnings"), "li", warning);
    at("heat-about").textContent = heat.about;
    at("timeline-about").textContent =
        (passes > 1 ? `Pass ${pass + 1} of ${passes}, whose time is nearest to the median. ` : "") +
        (afd ? "Sums over the micro-batches of the pass, one phase after the other: workers do not wait for each other."
             : "Dispatch and combine begin when all ranks are there.") +
        (ranks > kMostBars ? ` The ${kMostBars} slowest of ${ranks} ranks.` : "");
    fillTable(at("phases"), ["phase", "slowest rank", "moved by all", "rate"],
              run.phases.map((p) => [p.name, msText(p.ms), bytesText(p.bytes), p.gb_per_s.toFixed(2) + " GB/s"]));
    const number = (value) => value === null ? "not a number" : value.toPrecision(3);
    fillTable(at("checks"), ["against", "verdict", "tokens", "beyond limit", "largest error", "worst value at"],
              run.checks.map((c) => [c.against, c.passed ? "pass" : "fail", count(c.tokens), count(c.values_beyond_limit),
                                     number(c.largest_error), `[${c.worst.token}, ${c.worst.column}]`]));
    const sent = (r) => sum(run.bytes_from_rank_to_rank[r]) - run.bytes_from_rank_to_rank[r][r];
    const got = (r) => sum(run.bytes_from_rank_to_rank.map((row, s) => s === r ? 0 : row[r]));
    fillTable(at("ranks"), ["rank", "tokens", "rows", "of mean", "sent", "received", ...run.phases.map((p) => p.name)],
              Array.from({length: ranks}, (_, r) =>
                [r, count(load.tokens_of_rank[r]), count(load.rows_of_rank[r]), mean > 0 ? (load.rows_of_rank[r] / mean).toFixed(2) : "-",
                 bytesText(sent(r)), bytesText(got(r)), ...run.phases.map((p) => msText(p.ms_of_pass_and_rank[pass][r]))]));
    at("all-ranks").open = ranks <= 32;
    at("footer").textContent = `Moeyard ${run.moeyard}. Model ${run.model.directory}. Times are of the machine that ran it.`;
    if (ranks > 16) at("timeline-box").style.height = 6 + 1.1 * Math.min(ranks, kMostBars) + "rem";
    at("heat-box").style.height = Math.max(12, Math.min(36, 6 + 1.2 * heat.matrix.length)) + "rem";
  };

  // --- Charts ---
  const mix = (from, to, part) => {
    const value = (hex, i) => parseInt(hex.slice(1 + 2 * i, 3 + 2 * i), 16);
    return [0, 1, 2].map((i) => Math.round(value(from, i) + (value(to, i) - value(from, i)) * part));
  };
  const shades = () => {
    const stops = [color("heat-0"), color("heat-1"), color("heat-2")];
    return Array.from({length: 256}, (_, i) => i < 128 ? mix(stops[0], stops[1], i / 127) : mix(stops[1], stops[2], (i - 128) / 127));
  };
  // A pixel per cell; the chart draws it as large as there is room.
  const picture = (matrix, wide) => {
    const made = document.createElement("canvas");
    made.width = wide;
    made.height = matrix.length;
    const context = made.getContext("2d"), image = context.createImageData(wide, matrix.length);
    const top = most(matrix.map(most)) || 1, table = shades();
    matrix.forEach((row, r) => row.forEach((value, c) => {
      const shade = table[value === 0 ? 0 : Math.max(24, Math.round(255 * value / top))];
      image.data.set([...shade, 255], 4 * (r * wide + c));
    }));
    context.putImageData(image, 0, 0);
    return made;
  };
  const axis = (title, extra) => ({
    title: {display: true, text: title, color: color("soft")},
    ticks: {color: color("soft"), precision: 0},
    grid: {color: color("line"), drawBorder: false},
    ...extra,
  });
  const common = () => ({responsive: true, maintainAspectRatio: false, animation: false});

  const matrixChart = (id, matrix, wide, titles, text, value) => {
    const image = picture(matrix, wide), tall = matrix.length;
    const top = most(matrix.map(most));
    const reading = at(id + "-reading");
    const legend = () => {
      reading.textContent = "0 ";
      add(reading, "span", undefined, "scale");
      reading.appendChild(document.createTextNode(`${value(top)}. Point at a cell to read it.`));
    };
    legend();
    const read = (event, _, chart) => {
      const column = Math.round(chart.scales.x.getValueForPixel(event.x)), row = Math.round(chart.scales.y.getValueForPixel(event.y));
      if (matrix[row] === undefined || matrix[row][column] === undefined) legend();
      else reading.textContent = `${text(row, column)}: ${value(matrix[row][column])}`;
    };
    const cells = {
      id: "cells",
      beforeDatasetsDraw(chart) {
        const {left, top: above, width, height} = chart.chartArea, context = chart.ctx;
        context.save();
        context.imageSmoothingEnabled = false;
        context.drawImage(image, left, above, width, height);
        if (width / wide > 8 && height / tall > 8) {  // gaps where cells are large enough
          context.strokeStyle = color("card");
          context.lineWidth = 1;
          context.beginPath();
          for (let c = 1; c < wide; ++c) context.moveTo(left + c * width / wide, above), context.lineTo(left + c * width / wide, above + height);
          for (let r = 1; r < tall; ++r) context.moveTo(left, above + r * height / tall), context.lineTo(left + width, above + r * height / tall);
          context.stroke();
        }
        context.restore();
      },
    };
    const side = (title, size, reverse) => axis(title, {type: "linear", min: -0.5, max: size - 0.5, reverse, grid: {display: false, drawBorder: false},
      afterBuildTicks: (scale) => {
        const step = Math.max(1, Math.ceil(size / 16));
        scale.ticks = Array.from({length: Math.ceil(size / step)}, (_, i) => ({value: i * step}));
      }});
    return new Chart(at(id), {
      type: "scatter",
      data: {datasets: [{data: []}]},
      options: {...common(), onHover: read, onClick: read,
                scales: {x: side(titles[0], wide, false), y: side(titles[1], tall, true)},
                plugins: {legend: {display: false}, tooltip: {enabled: false}}},
      plugins: [cells],
    });
  };

  const loadChart = () => new Chart(at("load"), {
    data: {
      labels: busy.map((_, r) => r + firstExpertRank),
      datasets: [
        {type: "line", label: "mean", data: busy.map(() => mean), borderColor: color("mean"), backgroundColor: color("mean"),
         borderWidth: 2, pointRadius: 0, pointStyle: "line", borderDash: [6, 4]},
        {type: "bar", label: "rows", data: busy, pointStyle: "rect", backgroundColor: color("bar"), categoryPercentage: 0.9, barPercentage: 0.95}],
    },
    options: {...common(), interaction: {mode: "index", intersect: false},
              scales: {x: axis("rank", {grid: {display: false, drawBorder: false}}), y: axis("rows", {beginAtZero: true})},
              plugins: {legend: {labels: {color: color("soft"), usePointStyle: true}}}},
  });

  const timelineChart = () => {
    const {bars, shown} = timeline();
    return new Chart(at("timeline"), {
      type: "bar",
      data: {
        labels: shown,
        datasets: run.phases.map((phase, i) => ({
          label: phase.name, data: shown.map((rank) => bars[i][rank]), backgroundColor: color("phase-" + i % 6), grouped: false,
          categoryPercentage: 0.9, barPercentage: 0.9})),
      },
      options: {...common(), indexAxis: "y",
                scales: {x: axis("ms", {beginAtZero: true, ticks: {color: color("soft")}}), y: axis("rank", {grid: {display: false, drawBorder: false}})},
                plugins: {legend: {labels: {color: color("soft"), boxWidth: 14}},
                          tooltip: {callbacks: {title: (items) => `rank ${items[0].label}`,
                                                label: (item) => `${item.dataset.label}: ${msText(item.raw[1] - item.raw[0])}`}}}},
    });
  };

  let charts = [];
  const draw = () => {
    for (const chart of charts) chart.destroy();
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    charts = [
      loadChart(),
      matrixChart("heat", heat.matrix, heat.wide, [load.rows_from_rank_to_instance ? "expert" + (instances > run.model.experts ? " instance" : "") : "slot of the rank", "rank"],
                  heat.say, (rows) => `${count(rows)} row${rows === 1 ? "" : "s"}`),
      matrixChart("bytes", run.bytes_from_rank_to_rank, ranks, ["to rank", "from rank"], (from, to) => `rank ${from} to rank ${to}`, bytesText),
      timelineChart(),
    ];
    document.body.dataset.charts = charts.length;
  };
  writeText();
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  // Paper is white.
  window.addEventListener("beforeprint", () => { document.documentElement.dataset.theme = "print"; draw(); });
  window.addEventListener("afterprint", () => { delete document.documentElement.dataset.theme; draw(); });
})();
