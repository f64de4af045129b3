import { glob, readFile } from "node:fs/promises";

/** Builds the page that lists every metric, from the code that registers the metrics. */
const root = new URL("../../../", import.meta.url);

const introduction = `# Metrics

Every process serves its metrics in Prometheus' text format at \`/metrics\` on \`METRICS_PORT\`. Each series has the label \`service\`. The metrics of Node.js (\`nodejs_…\`) and of the process (\`process_…\`) are also there. Release 0.2 has other names than 0.1, whose names are gone. A later release that changes a name also serves the former one until the release after it.

This page is generated from the sources.
`;

/** Processes that use a library, and thereby have its metrics. */
const processesOfLibraries: Readonly<Record<string, string>> = {
  "libs/api-keys": "all services",
  "libs/http": "all",
  "libs/service": "all",
  "libs/jetstream": "all services",
};

type Metric = { name: string; type: string; labels: string; process: string; help: string };

const registrations = /new (Counter|Gauge|Histogram)(?:<[^(]*>)?\(/g;
const literals =
  /^\{\s*name: "(halyard_\w+)",\s*help:\s*"((?:[^"\\]|\\.)*)",(?:\s*labelNames: \[([^\]]*)\],)?/;

export async function buildMetricsPage(): Promise<string> {
  const metrics: Metric[] = [];
  for await (const file of glob("{services,libs,deploy}/*/src/**/*.ts", { cwd: root }))
    metrics.push(...metricsIn(file, await readFile(new URL(file, root), "utf8")));
  const rows = metrics
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, type, labels, process, help }) =>
      row(`\`${name}\``, type, labels, process, help.endsWith(".") ? help : `${help}.`),
    );
  const head = [row("Metric", "Type", "Labels", "Process", "Meaning"), "|---|---|---|---|---|"];
  return `${introduction}\n${[...head, ...rows].join("\n")}\n`;
}

function metricsIn(file: string, source: string): Metric[] {
  const folder = file.split("/").slice(0, 2).join("/");
  const process = processesOfLibraries[folder] ?? file.split("/")[1] ?? "";
  return [...source.matchAll(registrations)].map((registration) => {
    const found = literals.exec(source.slice(registration.index + registration[0].length));
    if (found === null) throw new Error(`${file}: a metric needs a literal \`name\` and \`help\``);
    const [, name = "", help = "", labelNames = ""] = found;
    const labels = [...labelNames.matchAll(/"(\w+)"/g)].map(([, label]) => `\`${label}\``);
    return {
      name,
      type: String(registration[1]).toLowerCase(),
      labels: labels.join(", "),
      process,
      help,
    };
  });
}

function row(...cells: string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll(/[|<]/g, "\\$&")).join(" | ")} |`;
}
