import { glob } from "node:fs/promises";
import { documentVariables } from "@halyard/service";
import type { z } from "zod";

/** The page that lists every environment variable, from the schemas that also parse them. */
const root = new URL("../../../", import.meta.url);

const introduction = `# Configuration

Services are configured by environment variables alone. Each checks all of them when it starts, reports every problem at once and exits with 2. An empty variable counts as one that is not set.
`;

type Section = { service: string; schema: z.ZodObject };

/** Every service has its schema at the same place, so that a new one is documented by itself. */
async function loadSections(): Promise<Section[]> {
  const files: string[] = [];
  for await (const file of glob("services/*/src/config.ts", { cwd: root })) files.push(file);
  return Promise.all(
    ["deploy/gateway/src/config.ts", "deploy/setup/src/config.ts", ...files.toSorted()].map(
      async (file) => {
        const module = await import(new URL(file, root).href);
        return {
          service: file.split("/")[1] as string,
          schema: module.configSchema as z.ZodObject,
        };
      },
    ),
  );
}

export async function buildConfigurationPage(): Promise<string> {
  const sections = await loadSections();
  return [introduction, ...sections.map(sectionOf)].join("\n");
}

function sectionOf({ service, schema }: Section): string {
  const rows = documentVariables(schema).map(
    ({ name, expects, defaultText, secret, description }) =>
      row(
        `\`${name}\``,
        defaultText ?? "**required**",
        `${description}${secret ? " A secret." : ""}`,
        expects,
      ),
  );
  const head = [row("Variable", "Default", "What it is", "Must be"), "|---|---|---|---|"];
  return `## ${service}\n\n${[...head, ...rows].join("\n")}\n`;
}

/** Neither a bar nor what stands in angle brackets is to mean anything but itself. */
function row(...cells: string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll(/[|<]/g, "\\$&")).join(" | ")} |`;
}
