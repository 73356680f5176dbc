"use strict";
(function () {
  const stops = JSON.parse(document.getElementById("stops").textContent);
  const at = (id) => document.getElementById(id);
  const slider = at("slider");
  const ratio = at("ratio");
  const positives = stops.positives;
  const negatives = stops.negatives;
  const rows = positives + negatives;

  const count = (value) => value.toLocaleString("en-US", { maximumFractionDigits: stops.digits });
  const percent = (share) => (share === null ? "–" : (100 * share).toFixed(1) + "\u00a0%");
  const range = (bounds) => percent(bounds[0]) + " to " + percent(bounds[1]);

  function costRatio() {
    const value = Number.parseFloat(ratio.value);
    return Number.isFinite(value) && value >= 0 ? value : stops.ratio;
  }

  function cost(i) {
    return stops.alarm * (stops.fp[i] + costRatio() * (positives - stops.tp[i]));
  }

  const svgNode = (name) => document.createElementNS("http://www.w3.org/2000/svg", name);

  // Dots on the curves and a line among the scores. Each plot carries the position of its axes.
  const markers = Array.from(document.querySelectorAll("[data-marker]"), (plot) => {
    const [left, top, right, bottom] = plot.dataset.box.split(" ").map(Number);
    const [from, high, to, low] = plot.dataset.limits.split(" ").map(Number);
    const kind = plot.dataset.marker;
    const log = kind === "lift";
    const scale = log ? Math.log : (value) => value;
    const x = (value) => left + ((scale(value) - scale(from)) / (scale(to) - scale(from))) * (right - left);
    const y = (value) => bottom - ((value - low) / (high - low)) * (bottom - top);
    const node = svgNode(kind === "scores" ? "line" : "circle");
    node.setAttribute("class", "marker");
    plot.querySelector("svg").append(node);
    if (kind === "scores") {
      node.setAttribute("y1", top);
      node.setAttribute("y2", bottom);
      return (i) => {
        const position = Math.min(Math.max(x(stops.threshold[i]), left), right);
        node.setAttribute("x1", position);
        node.setAttribute("x2", position);
      };
    }
    node.setAttribute("r", 4.2);
    return (i) => {
      const recall = stops.tp[i] / positives;
      const called = stops.tp[i] + stops.fp[i];
      const point = {
        roc: [stops.fp[i] / negatives, recall],
        pr: [recall, stops.tp[i] / called],
        gain: [called / rows, recall],
        lift: [called / rows, (recall * rows) / called],
      }[kind];
      const seen = point.every(Number.isFinite) && point[0] >= from && point[1] <= high;
      node.setAttribute("visibility", seen ? "visible" : "hidden");
      if (seen) {
        node.setAttribute("cx", x(point[0]));
        node.setAttribute("cy", y(point[1]));
      }
    };
  });

  function show() {
    const i = Number(slider.value);
    const tp = stops.tp[i];
    const fp = stops.fp[i];
    const called = tp + fp;
    const write = (id, text) => {
      at("out-" + id).textContent = text;
    };
    const precision = called > 0 ? tp / called : null;
    write("threshold", stops.threshold[i].toFixed(stops.places));
    write("probability", percent(stops.probability[i]));
    write("tp", count(tp));
    write("fn", count(positives - tp));
    write("fp", count(fp));
    write("tn", count(negatives - fp));
    write("precision", percent(precision));
    write("recall", percent(tp / positives));
    write("fpr", percent(fp / negatives));
    write("called", percent(called / rows));
    write("cost", count(cost(i)));
    write("precision-range", precision === null ? "" : range(stops.precision[i]));
    write("recall-range", range(stops.recall[i]));
    write("fpr-range", range(stops.fpr[i]));
    write("called-range", count(called) + " of " + count(rows));
    write("cost-range", ((100 * cost(i)) / rows).toFixed(1) + " per 100 rows");
    const summary =
      called > 0
        ? count(called) + " of " + count(rows) + " rows are labelled positive, " + count(tp) + " of them correctly; " +
          count(positives - tp) + " of " + count(positives) + " positives are missed."
        : "No row is labelled positive, and all " + count(positives) + " positives are missed.";
    at("summary").textContent = summary;
    slider.setAttribute(
      "aria-valuetext",
      "score " + stops.threshold[i].toFixed(stops.places) + ", recall " + percent(tp / positives) +
        ", precision " + percent(precision)
    );
    markers.forEach((move) => move(i));
  }

  function go(i) {
    slider.value = i;
    show();
  }

  slider.addEventListener("input", show);
  ratio.addEventListener("input", show);
  at("to-model").addEventListener("click", () => go(stops.start));
  at("to-cheapest").addEventListener("click", () => {
    let best = 0;
    for (let i = 1; i < stops.tp.length; i++) if (cost(i) <= cost(best)) best = i; // of equal costs, fewer alarms
    go(best);
  });
  show();
})();
