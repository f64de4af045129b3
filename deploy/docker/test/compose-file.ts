import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";

const root = new URL("../../../", import.meta.url);

export const projectRoot = fileURLToPath(root);

export type Container = {
  image: string;
  build?: { dockerfile: string; args: Record<string, string> };
  command?: string[];
  environment?: Record<string, string>;
  depends_on?: Record<string, { condition: string }>;
  networks: string[] | Record<string, { aliases?: string[] }>;
  volumes?: string[];
  ports?: string[];
  read_only?: boolean;
  cap_drop?: string[];
  security_opt?: string[];
  restart?: string;
  profiles?: string[];
  mem_limit?: string;
  pids_limit?: number;
  healthcheck?: unknown;
  secrets?: string[];
};

type ComposeFile = {
  services: Record<string, Container>;
  networks: Record<string, { internal?: boolean } | null>;
  secrets?: Record<string, { file: string }>;
};

/** Reads a file of the project. */
export const readProjectFile = (path: string) => readFileSync(new URL(path, root), "utf8");

/** Parses the variables of an .env file. */
export function variablesOf(text: string): Record<string, string> {
  const pairs = [...text.matchAll(/^(?<name>[A-Z_]+)=(?<value>.*)$/gm)];
  return Object.fromEntries(pairs.map(({ groups = {} }) => [groups.name, groups.value]));
}

/** Runs the script that the documentation names, and returns its output. */
export function generateEnv(): string {
  const { status, stdout, stderr } = spawnSync("sh", ["deploy/docker/generate-env"], {
    cwd: root,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`generate-env failed: ${stderr}`);
  return stdout;
}

/** Parses a Compose file and substitutes the variables of an .env file, as Docker Compose does. */
export function readComposeFile(
  env: Record<string, string>,
  path = "docker-compose.yml",
): ComposeFile {
  return substituteAll(parse(readProjectFile(path), { merge: true }), env);
}

/** Returns the names of all variables in docker-compose.yml. */
export function variablesOfComposeFile(): Set<string> {
  return new Set(
    [...readProjectFile("docker-compose.yml").matchAll(variable)].map(
      ({ groups }) => groups?.name ?? "",
    ),
  );
}

const variable = /\$\{(?<name>[A-Z_]+)(?::(?<kind>[-?])(?<rest>[^}]*))?\}/g;

/** Substitutes after parsing, as Docker Compose does, so that an empty variable becomes an empty text and not null. */
function substituteAll<T>(value: T, env: Record<string, string>): T {
  return JSON.parse(JSON.stringify(value), (_key, member) =>
    typeof member === "string" ? substitute(member, env) : member,
  );
}

function substitute(text: string, env: Record<string, string>): string {
  return text.replaceAll(variable, (_all, name: string, kind?: string, rest = "") => {
    const value = env[name];
    if (value !== undefined && value !== "") return value;
    if (kind === "?") throw new Error(`${name} ${rest}`);
    return kind === "-" ? rest : "";
  });
}

/** Returns the environment that the Dockerfile sets in every container. */
export function environmentOfImages(): Record<string, string> {
  const [, block = ""] =
    /^ENV ((?:.*\\\n)*.*)$/m.exec(readProjectFile("deploy/docker/Dockerfile")) ?? [];
  const pairs = [...block.matchAll(/(?<name>\w+)=(?<value>\S+)/g)];
  return Object.fromEntries(pairs.map(({ groups = {} }) => [groups.name, groups.value]));
}
