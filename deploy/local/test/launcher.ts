import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { isRunning } from "@halyard/local-backends";
import { afterAll, afterEach, beforeAll, jest } from "@jest/globals";
import { ensureDashboard } from "../src/dashboard-build.ts";

export const PROJECT_DIR = fileURLToPath(new URL("../../..", import.meta.url));

const MAIN = join(PROJECT_DIR, "deploy/local/src/main.ts");
const TIMEOUT_MS = 60_000;
/** A start takes a few seconds. Beside three other whole systems on two slow cores, it took more than a minute. */
const START_TIMEOUT_MS = 150_000;
const POLL_INTERVAL_MS = 20;

jest.setTimeout(2 * START_TIMEOUT_MS);

export type Demo = {
  base_url: string;
  operator_token: string;
  organization_id: string;
  project_id: string;
  environment_id: string;
  client_key: string;
  server_key: string;
  reader_key: string;
  services: Record<string, { url: string; metrics_url: string; pid: number }>;
};

export type Halyard = {
  child: ChildProcess;
  pid: number;
  home: string;
  /** Returns the output so far. */
  output(): string;
  exited: Promise<number | null>;
  /** Waits for demo.json. Fails if the launcher ends first. */
  ready(): Promise<Demo>;
  /** Sends the signal and waits until the launcher has exited. After SIGKILL, the run may still be stopping. */
  end(signal: NodeJS.Signals): Promise<number | null>;
};

const untilTestEnds: Halyard[] = [];
const untilFileEnds: Halyard[] = [];

/**
 * Builds the dashboard before the tests of the calling file, and ends what they launched. Each file calls this, because
 * the files of a worker share this module: hooks at its top would only run for the first file.
 */
export function prepareLaunches(): void {
  // The first start of a checkout builds the dashboard, which can take longer than the tests wait.
  beforeAll(async () => void (await ensureDashboard()), 5 * TIMEOUT_MS);
  afterEach(() => endAll(untilTestEnds));
  afterAll(() => endAll(untilFileEnds));
}

async function endAll(halyards: Halyard[]): Promise<void> {
  for (const halyard of halyards.splice(0)) {
    if (isRunning(halyard.pid)) await halyard.end("SIGTERM");
  }
}

/** Starts the launcher of `npm start`, on a free port unless the variables set one. */
export function launchHalyard(options: {
  home: string;
  variables?: Record<string, string>;
  user?: { uid: number; gid: number };
  command?: { program: string; args: string[] };
  /** Options of the launcher. */
  args?: string[];
  /** Keeps the run until all tests of the file have finished, so that they can share it. */
  untilFileEnds?: boolean;
}): Halyard {
  const { home, user, command = { program: process.execPath, args: [MAIN] } } = options;
  const child = spawn(command.program, [...command.args, ...(options.args ?? [])], {
    cwd: PROJECT_DIR,
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      PORT: "0",
      HALYARD_HOME: home,
      ...options.variables,
    },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
    ...(user && { uid: user.uid, gid: user.gid }),
  });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      printed += chunk;
    });
  }
  const halyard = describeLaunch({ child, home, output: () => printed });
  (options.untilFileEnds ? untilFileEnds : untilTestEnds).push(halyard);
  return halyard;
}

function describeLaunch(launch: Pick<Halyard, "child" | "home" | "output">): Halyard {
  const { child, home, output } = launch;
  const exited = once(child, "close").then(([code]) => code as number | null);
  const demoFile = join(home, "demo.json");
  return {
    ...launch,
    pid: child.pid ?? 0,
    exited,
    async ready() {
      const hasStarted = () => {
        if (child.exitCode !== null) throw new Error(`the launcher ended:\n${output()}`);
        return existsSync(demoFile);
      };
      await eventually("demo.json", hasStarted, START_TIMEOUT_MS);
      return JSON.parse(readFileSync(demoFile, "utf8"));
    },
    async end(signal) {
      child.kill(signal);
      if (signal === "SIGKILL") await once(child, "exit");
      return signal === "SIGKILL" ? null : exited;
    },
  };
}

export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  withinMs = TIMEOUT_MS,
): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`);
    await delay(POLL_INTERVAL_MS);
  }
}

export async function isListening(url: string): Promise<boolean> {
  try {
    await fetch(url);
    return true;
  } catch {
    return false;
  }
}
