import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { natsLoginVariables } from "./nats-login.ts";
import { projectRoot } from "./project-root.ts";
import { testMessageSigning, testSigning } from "./test-signing.ts";

/** A service in its own process, as in production. */
export type ServiceProcess = {
  url: string;
  metricsUrl: string;
  pid: number;
  /** Returns the whole log so far. */
  log(): string;
  signal(name: NodeJS.Signals): void;
  /** Resolves with the exit code, or with the signal that ended the process. */
  exited: Promise<number | NodeJS.Signals>;
  /** Stops the process with SIGTERM. */
  stop(): Promise<number | NodeJS.Signals>;
  kill(): Promise<void>;
};

const entries = {
  management: "services/management/src/main.ts",
  scheduler: "services/scheduler/src/main.ts",
  "sdk-edge": "services/sdk-edge/src/main.ts",
  "webhook-dispatcher": "services/webhook-dispatcher/src/main.ts",
  "usage-metering": "services/usage-metering/src/main.ts",
  dashboard: "deploy/dashboard/src/main.ts",
  gateway: "deploy/gateway/src/main.ts",
} as const;

export async function startServiceProcess(
  name: keyof typeof entries,
  environment: Record<string, string>,
): Promise<ServiceProcess> {
  const child = fork(join(projectRoot, entries[name]), {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      HALYARD_MODE: "development",
      PORT: "0",
      METRICS_PORT: "0",
      LOG_LEVEL: "info",
      ...natsLoginVariables(name),
      ...testSigning.readers,
      ...(name === "management" && testSigning.management),
      ...testMessageSigning[name],
      ...environment,
    },
    execArgv: ["--disable-warning=ExperimentalWarning"],
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  const lines: string[] = [];
  child.stdout?.on("data", (data: Buffer) => lines.push(data.toString()));
  child.stderr?.on("data", (data: Buffer) => lines.push(data.toString()));
  const exited = exitOf(child);
  const listening = await Promise.race([announcement(child), exited]);
  if (typeof listening !== "object")
    throw new Error(`${name} ended with ${listening} before it listened:\n${lines.join("")}`);
  const pid = child.pid as number;
  return {
    url: listening.url,
    metricsUrl: listening.metrics_url,
    pid,
    log: () => lines.join(""),
    signal: (signal) => void process.kill(pid, signal),
    exited,
    async stop() {
      child.kill("SIGTERM");
      return exited;
    },
    async kill() {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

type Listening = { type: "listening"; url: string; metrics_url: string };

async function announcement(child: ChildProcess): Promise<Listening> {
  const [message] = (await once(child, "message")) as [Listening];
  return message;
}

async function exitOf(child: ChildProcess): Promise<number | NodeJS.Signals> {
  const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
  return code ?? signal ?? 0;
}
