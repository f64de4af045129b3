import { glob } from "node:fs/promises";
import { type DocumentedVariable, documentVariables } from "@halyard/configuration";
import type { z } from "zod";

/** Builds the page that lists every environment variable, from the schemas that also parse the variables. */
const root = new URL("../../../", import.meta.url);

const introduction = `# Configuration

Environment variables configure every process. A process checks them when it starts; if some are invalid, it reports all problems and exits with code 2. An empty variable counts as not set.

The value of each variable can be in a file instead. \`POSTGRES_URL_FILE=/run/secrets/postgres\` reads \`POSTGRES_URL\` from this file, without the line break at its end. The process reads the file once, when it starts.

[Common settings](#common-settings) lists the variables that several processes share. The sections of the processes list the others.
`;

type Section = { service: string; variables: readonly DocumentedVariable[] };

const doctorFile = "deploy/setup/src/doctor/config.ts";

/** Reads the schema of each process from the same path, so that a new service appears without a change here. */
async function loadSections(): Promise<Section[]> {
  const files: string[] = [];
  for await (const file of glob("services/*/src/config.ts", { cwd: root })) files.push(file);
  const others = ["dashboard", "gateway", "setup"].map((name) => `deploy/${name}/src/config.ts`);
  return Promise.all(
    [...others, doctorFile, ...files.toSorted()].map(async (file) => {
      const module = await import(new URL(file, root).href);
      const schema = module.configSchema as z.ZodObject;
      const service = file === doctorFile ? "doctor" : (file.split("/")[1] as string);
      return { service, variables: documentVariables(schema) };
    }),
  );
}

export async function buildConfigurationPage(): Promise<string> {
  const sections = await loadSections();
  const usersOf = new Map<string, string[]>();
  for (const { service, variables } of sections)
    for (const each of variables) {
      const users = usersOf.get(rowOf(each)) ?? [];
      usersOf.set(rowOf(each), [...users, service]);
    }
  const common = [...usersOf].filter(([, users]) => users.length > 1);
  const isCommon = new Set(common.map(([row]) => row));
  const services = sections.map(({ service }) => service);
  const commonRows = common.map(([row, users]) => `${row} ${namesOf(users, services)} |`);
  return [
    introduction,
    tableOf("Common settings", [...heads, "Used by"], commonRows),
    ...sections.map(({ service, variables }) =>
      tableOf(
        service,
        heads,
        variables.map(rowOf).filter((row) => !isCommon.has(row)),
      ),
    ),
  ].join("\n");
}

const heads = ["Variable", "Default", "Description", "Value"];

function tableOf(title: string, columns: readonly string[], rows: readonly string[]): string {
  const separator = `|${"---|".repeat(columns.length)}`;
  return `## ${title}\n\n${[cells(...columns), separator, ...rows].join("\n")}\n`;
}

function rowOf({ name, expects, defaultText, secret, description }: DocumentedVariable): string {
  const text = secret ? `${description} Secret.` : description;
  return cells(`\`${name}\``, defaultText ?? "**required**", text, expects);
}

/** Returns the processes that use a variable, or the exceptions if there are at most two. */
function namesOf(users: readonly string[], all: readonly string[]): string {
  const others = all.filter((service) => !users.includes(service));
  if (others.length === 0) return "all";
  return others.length > 2 ? users.join(", ") : `all except ${others.join(", ")}`;
}

/** Returns a row of a table, with bars and angle brackets escaped. */
function cells(...texts: string[]): string {
  return `| ${texts.map((text) => text.replaceAll(/[|<]/g, "\\$&")).join(" | ")} |`;
}
