import { join } from "node:path";
import { type ExitStatus, type Reaper, startBackgroundProcess } from "@halyard/local-backends";
import { endOfLog } from "./end-of-log.ts";
import { StartError } from "./start-error.ts";

/** What it takes to start a service: its program and only the variables that it needs. */
export type ServicePlan = {
  name: string;
  program: string;
  environment: Record<string, string>;
  /** The port to listen on; 0 takes a free one. */
  port: number;
  /** Runs before the first start and before a restart for changed sources. */
  prepare?: () => Promise<void>;
};

export type ServiceProcess = {
  name: string;
  url: string;
  metricsUrl: string | undefined;
  pid: number;
  logFile: string;
  exited: Promise<ExitStatus>;
  stop(): Promise<ExitStatus>;
};

/** Starting takes well below a second; this is for a machine under heavy load. */
const START_PATIENCE_MS = 60_000;

/** Every service drains within 20 s of SIGTERM. */
const STOP_STEPS = [{ signal: "SIGTERM", patienceMs: 21_000 }] as const;

type Listening = { type: "listening"; url: string; metrics_url?: string };

/**
 * Starts a service and returns when it listens. It takes over the ports of the previous process, so
 * that the gateway and metrics collectors still reach it. Its output goes to a log file.
 */
export async function startServiceProcess(
  plan: ServicePlan,
  context: { projectDir: string; logsDir: string; reaper: Reaper },
  previous: ServiceProcess | undefined,
): Promise<ServiceProcess> {
  const listening = Promise.withResolvers<Listening>();
  const child = await startBackgroundProcess({
    command: process.execPath,
    args: [join(context.projectDir, plan.program)],
    logFile: join(context.logsDir, `${plan.name}.log`),
    workingDirectory: context.projectDir,
    environment: {
      ...plan.environment,
      PORT: portOf(previous?.url) ?? String(plan.port),
      METRICS_PORT: portOf(previous?.metricsUrl) ?? "0",
    },
    stopSteps: [...STOP_STEPS],
    onMessage: (message) => {
      if (isListening(message)) listening.resolve(message);
    },
  });
  context.reaper.guard(child.pid, { stopSignal: "SIGTERM" });
  const failed = Promise.withResolvers<never>();
  void child.exited.then((status) => failed.reject(diedAtStart(plan.name, status, child.logFile)));
  const timer = setTimeout(
    () => failed.reject(silentAtStart(plan.name, child.logFile)),
    START_PATIENCE_MS,
  );
  try {
    const { url, metrics_url } = await Promise.race([listening.promise, failed.promise]);
    const { pid, logFile, exited, stop } = child;
    return { name: plan.name, url, metricsUrl: metrics_url, pid, logFile, exited, stop };
  } catch (error) {
    await child.stop();
    throw error;
  } finally {
    clearTimeout(timer);
    // From here on the end of the process is the business of whoever looks after it.
    failed.promise.catch(() => {});
  }
}

function portOf(url: string | undefined): string | undefined {
  return url === undefined ? undefined : new URL(url).port;
}

/** How a process ended and the end of its log, for people. */
export function describeDeath(name: string, status: ExitStatus, logFile: string): string {
  return `${name} ended ${describeExit(status)}. The end of its log (${logFile}):${endOfLog(logFile)}`;
}

export function describeExit(status: ExitStatus): string {
  return status.signal === null ? `with exit code ${status.code}` : `by ${status.signal}`;
}

function diedAtStart(name: string, status: ExitStatus, logFile: string): StartError {
  return new StartError(describeDeath(name, status, logFile));
}

function silentAtStart(name: string, logFile: string): StartError {
  return new StartError(
    `${name} did not listen within ${START_PATIENCE_MS / 1000} s. Its log is ${logFile}.`,
  );
}

function isListening(message: unknown): message is Listening {
  return (
    typeof message === "object" &&
    message !== null &&
    "type" in message &&
    message.type === "listening" &&
    "url" in message
  );
}
