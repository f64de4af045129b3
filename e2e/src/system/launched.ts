import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { eventually } from "@halyard/testing";

/** The members of `demo.json` that tests read. */
export type Demo = {
  base_url: string;
  operator_token: string;
  organization_id: string;
  project_id: string;
  environment_id: string;
  client_key: string;
  server_key: string;
};

/** A run of the launcher of `npm start`, with its own home. */
export type Launched = {
  home: string;
  demo: Demo;
  /** Returns the output so far. */
  output(): string;
  /** Returns host and port of a local server. */
  backendAddress(name: "PostgreSQL" | "NATS"): string;
  /** Stops everything in order. Returns the exit code. */
  stop(): Promise<number | null>;
  /** Stops everything that still runs, and removes the home. */
  remove(): Promise<void>;
};

const thisProject = fileURLToPath(new URL("../../..", import.meta.url));
/** A start takes a few seconds. Beside three other whole systems on two slow cores, it took more than a minute. */
const startWithinMs = 150_000;

/** Mode of the home, which other users can pass through, because PostgreSQL never runs as root. */
const openToPass = 0o755;

export async function launch(
  variables: Record<string, string>,
  options: {
    /** The checkout to start. The default is this one. */
    projectDir?: string;
    /** Prepares the home before the start. */
    prepare?: (home: string) => Promise<void>;
  } = {},
): Promise<Launched> {
  const directory = mkdtempSync(join(tmpdir(), "halyard-e2e-home-"));
  await chmod(directory, openToPass);
  const home = join(directory, "home");
  await options.prepare?.(home);
  const program = join(options.projectDir ?? thisProject, "deploy/local/src/main.ts");
  const child = spawn(process.execPath, [program], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      PORT: "0",
      HALYARD_HOME: home,
      ...variables,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const printed: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (data: Buffer) => printed.push(data.toString()));
  const exited = once(child, "close").then(([code]) => code as number | null);
  const launched = {
    home,
    output: () => printed.join(""),
    backendAddress(name: string) {
      const found = new RegExp(`${name} \\S+ on (\\S+)`).exec(launched.output())?.[1];
      if (found === undefined) throw new Error(`no address of ${name}:\n${launched.output()}`);
      return found;
    },
    async stop() {
      child.kill("SIGTERM");
      return exited;
    },
    async remove() {
      if (child.exitCode === null) await launched.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
  try {
    return { ...launched, demo: await readDemo(child, join(home, "demo.json")) };
  } catch (cause) {
    await launched.remove();
    throw new Error(`the launcher did not start:\n${launched.output()}`, { cause });
  }
}

async function readDemo(child: ChildProcess, file: string): Promise<Launched["demo"]> {
  await eventually(() => child.exitCode !== null || existsSync(file), {
    withinMs: startWithinMs,
    because: "demo.json exists",
  });
  return JSON.parse(readFileSync(file, "utf8")) as Launched["demo"];
}
