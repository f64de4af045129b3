import type { SystemStatus } from "../api/schema.d.ts";
import { count as wholeNumber } from "../ui/numbers.ts";

export type Process = SystemStatus["processes"][number];
type Service = Process["service"];
export type Propagation = SystemStatus["propagation"];
export type DeadLetter = NonNullable<SystemStatus["dead_letters"]>["newest"][number];

/** The services of an installation in the order of the page, each with its task. */
export const tasks: Readonly<Record<Service, string>> = {
  management: "Serves the API and this dashboard's data",
  "sdk-edge": "Serves flags to applications",
  scheduler: "Applies scheduled changes",
  "webhook-dispatcher": "Sends webhooks",
  "usage-metering": "Counts requests and evaluations",
};
const services = Object.keys(tasks) as Service[];

/** A process, or a service without a reporting process. */
export type ProcessRow = {
  id: string;
  service: Service;
  process: Process | undefined;
  isOtherVersion: boolean;
};

export function processRows(processes: readonly Process[]): readonly ProcessRow[] {
  const usual = versionsOf(processes)[0]?.version;
  return services.flatMap((service): ProcessRow[] => {
    const own = processes.filter((process) => process.service === service);
    if (own.length === 0)
      return [{ id: service, service, process: undefined, isOtherVersion: false }];
    return own.map((process) => ({
      id: process.id,
      service,
      process,
      isOtherVersion: process.version !== usual,
    }));
  });
}

/** Returns the versions with their numbers of processes, the most frequent first. */
export function versionsOf(
  processes: readonly Process[],
): readonly { version: string; count: number }[] {
  const counts = new Map<string, number>();
  for (const { version } of processes) counts.set(version, (counts.get(version) ?? 0) + 1);
  return [...counts]
    .map(([version, count]) => ({ version, count }))
    .sort((left, right) => right.count - left.count);
}

type Problem = {
  text: string;
  /** Section of docs/runbooks.md about the problem. */
  runbook: string;
};

/** Returns the problems of the installation, the gravest first. */
export function problemsOf(status: SystemStatus): readonly Problem[] {
  return [
    ...natsProblems(status),
    ...processProblems(status),
    ...propagationProblems(status.propagation),
    ...deadLetterProblems(status),
  ];
}

function natsProblems({ nats }: SystemStatus): Problem[] {
  if (nats.connected) return [];
  return [
    {
      text: "NATS is disconnected. Applications get flags from memory; changes reach them when NATS is connected again.",
      runbook: "NATS is unavailable",
    },
  ];
}

function processProblems({ processes, nats }: SystemStatus): Problem[] {
  const rows = processRows(processes);
  const missing = rows.filter(({ process }) => process === undefined);
  const stale = rows.filter(({ process }) => process?.state === "stale");
  const versions = versionsOf(processes);
  return [
    ...(nats.connected ? missing : []).map(({ service }) => ({
      text: `No process of ${service} reports.`,
      runbook: "A service is missing",
    })),
    ...stale.map(({ service, process }) => ({
      text: `A process of ${service} has had old data for ${process?.stale_seconds} s.`,
      runbook: "A process serves old data",
    })),
    ...(versions.length > 1
      ? [
          {
            text: `Processes run different versions: ${versions.map(({ version, count }) => `${version} (${count})`).join(", ")}. This is normal only during an upgrade.`,
            runbook: "Status of the installation",
          },
        ]
      : []),
  ];
}

function propagationProblems({ recent, p99_ms }: Propagation): Problem[] {
  const late = recent.filter(({ applied_ms }) => applied_ms === null).length;
  if (late === 0 || p99_ms !== null) return [];
  return [
    {
      text: `${late} of the last ${recent.length} changes needed more than ${limitMs} ms to reach every edge.`,
      runbook: "Flag changes do not arrive",
    },
  ];
}

function deadLetterProblems({ dead_letters: letters }: SystemStatus): Problem[] {
  if (letters === null || letters.count === 0) return [];
  const messages = letters.count === 1 ? "1 message" : `${wholeNumber(letters.count)} messages`;
  return [{ text: `${messages} could not be processed.`, runbook: "Dead-lettered messages" }];
}

/** Time after which a write no longer waits for the edges, so a later arrival is not measured. */
export const limitMs = 500;

/** Returns a duration in words. Null means that it was above the limit. */
export function millisecondsText(ms: number | null): string {
  if (ms === null) return `over ${limitMs} ms`;
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
}

const flagEvent = {
  effect: "No webhook received it.",
  action: "Let the dispatchers read the event log again.",
};
const effects: Readonly<Record<string, { effect: string; action: string }>> = {
  "schedule.due": {
    effect: "The schedule has failed, or is sent again.",
    action: "If it failed, switch the flag or set a new schedule.",
  },
  "schedule.resolved": {
    effect: "The schedule stays pending and is sent again.",
    action: "Nothing.",
  },
  "usage.recorded": {
    effect: "Its requests are not counted.",
    action: "Publish it again. It counts once.",
  },
  "evaluations.reported": {
    effect: "The evaluations of one report are not counted.",
    action: "Publish it again. It counts once.",
  },
  "usage.last_seen": { effect: "None: later messages repeat it.", action: "Nothing." },
  "audit.recorded": {
    effect: "Its entry is missing in the audit log.",
    action: "Publish it again. It is inserted once.",
  },
};

/** Returns the effect of a dead letter and the remedy, in the words of docs/runbooks.md. */
export function effectOf(subject: string): { effect: string; action: string } {
  const found = effects[subject];
  if (found !== undefined) return found;
  if (subject.startsWith("flag.")) return flagEvent;
  return { effect: "Unknown.", action: "Read the message, then fix its cause." };
}
