import { checkProcessStatus, processStatuses, serviceNames } from "@halyard/contracts";
import {
  apiTimeoutMs,
  connectOnce,
  expectedStreams,
  findStream,
  type NatsServers,
} from "@halyard/jetstream";
import { type JetStreamManager, jetstreamManager, type StreamInfo } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { errors } from "@nats-io/transport-node";
import { type Finding, findingsOf, judged, ok, problem, warning } from "./finding.ts";

type NatsChecks = { nats: NatsServers; replicas: number; version: string };

/** Three reports of each process. */
const listenMs = 3 * processStatuses.intervalMs;
/** No stream has this subject, so a server that lets the doctor publish stores nothing. */
const forbiddenSubject = "halyard.doctor.probe";

type Version = readonly [major: number, minor: number, patch: number];
const oldest: Version = [2, 9, 10];
/** Older servers have bugs in replicated streams, which docs/deployment.md names. */
const oldestForReplicas: Version = [2, 11, 0];

/** Checks NATS, its streams, and the processes that report through it, with the doctor's user. */
export function checkNats({ nats, replicas, version }: NatsChecks): Promise<Finding[]> {
  const advice =
    "Check NATS_URL, NATS_USER and NATS_PASSWORD, and that the server has the user `doctor` with its generated rights.";
  return findingsOf("nats", advice, async () => {
    const connection = await connectOnce({ nats, name: "doctor" });
    try {
      const processes = listen(connection);
      const manager = await jetstreamManager(connection, { timeout: apiTimeoutMs });
      return [
        checkServer(connection, replicas),
        await checkRights(connection),
        ...(await checkStreams(manager, replicas)),
        await checkStorage(manager),
        ...judgeProcesses(await processes, version),
      ];
    } finally {
      await connection.close();
    }
  });
}

function checkServer({ info }: NatsConnection, replicas: number): Finding {
  const version = info?.version ?? "of an unknown version";
  const cluster = info?.cluster === undefined ? "" : ` (cluster ${info.cluster})`;
  return judgeServer({ version, cluster, replicas });
}

export function judgeServer({
  version,
  cluster = "",
  replicas,
}: {
  version: string;
  cluster?: string;
  replicas: number;
}): Finding {
  const text = `NATS ${version} answers${cluster}`;
  if (!isFrom(oldest, version)) return problem("nats", text, "Upgrade NATS to 2.9.10 or later.");
  if (replicas === 1 || isFrom(oldestForReplicas, version)) return ok("nats", text);
  const advice =
    "Upgrade all servers to 2.11 or later: older ones can lose messages of replicated streams after a partition " +
    "(docs/reliability.md).";
  return warning("nats", text, advice);
}

function isFrom(wanted: Version, version: string): boolean {
  const found = version.split(".").map((part) => Number.parseInt(part, 10) || 0);
  const differs = wanted.findIndex((part, index) => part !== found[index]);
  return differs === -1 || (found[differs] ?? 0) > (wanted[differs] ?? 0);
}

async function checkRights(connection: NatsConnection): Promise<Finding> {
  const denied = await connection
    .request(forbiddenSubject, undefined, { timeout: apiTimeoutMs })
    .then(
      () => false,
      (error: Error) => hasCause(error, errors.PermissionViolationError),
    );
  return denied
    ? ok("nats rights", "the server denies what a user has no right to")
    : problem(
        "nats rights",
        "the server lets the doctor publish on any subject",
        "Give each service its own user with the generated rights (deploy/docker/nats-users.conf).",
      );
}

function hasCause(error: unknown, Type: new (...args: never[]) => Error): boolean {
  if (error instanceof Type) return true;
  return error instanceof Error && error.cause !== undefined && hasCause(error.cause, Type);
}

async function checkStreams(manager: JetStreamManager, replicas: number): Promise<Finding[]> {
  const faults: string[] = [];
  for (const config of expectedStreams) {
    const info = await findStream(manager, config.name);
    if (info === undefined) faults.push(`${config.name} does not exist`);
    else faults.push(...faultsOf(info, config, replicas).map((fault) => `${config.name} ${fault}`));
  }
  const advice =
    "Run npm run setup for missing streams; management makes the snapshot and people. Change other settings with the " +
    "command `nats stream edit`.";
  const text = `${expectedStreams.length} streams have their settings and ${replicas} replica${replicas === 1 ? "" : "s"}`;
  return [judged("streams", text, faults, advice)];
}

/** Settings that a stream must have. Limits of size and age may be changed by an operator. */
const compared = [
  "retention",
  "discard",
  "max_msgs_per_subject",
  "deny_delete",
  "allow_direct",
] as const;

function faultsOf(
  { config, cluster }: StreamInfo,
  expected: (typeof expectedStreams)[number],
  replicas: number,
): string[] {
  const differing = compared.filter(
    (setting) => expected[setting] !== undefined && config[setting] !== expected[setting],
  );
  const lacking = (expected.subjects ?? []).filter(
    (subject) => !config.subjects?.includes(subject),
  );
  const behind = (cluster?.replicas ?? []).filter(({ current }) => !current);
  return [
    ...differing.map(
      (setting) => `has ${setting} ${config[setting]} instead of ${expected[setting]}`,
    ),
    ...lacking.map((subject) => `lacks the subject ${subject}`),
    ...(config.num_replicas === replicas
      ? []
      : [`has replicas: ${config.num_replicas} instead of ${replicas}`]),
    ...(cluster !== undefined && cluster.leader === undefined ? ["has no leader"] : []),
    ...behind.map(({ name }) => `has a replica on ${name} that is behind or offline`),
  ];
}

async function checkStorage(manager: JetStreamManager): Promise<Finding> {
  const { storage, limits } = await manager.getAccountInfo();
  return judgeStorage(storage, limits.max_storage);
}

/**
 * Compares the stored bytes with the limit of the account. Without a limit, the server lets only a user of its system
 * account see how much it can store.
 */
export function judgeStorage(storage: number, limit: number): Finding {
  if (limit <= 0)
    return ok(
      "disk",
      `JetStream stores ${megabytes(storage)}. Its account has no limit, so check the disks of NATS yourself`,
    );
  const text = `JetStream stores ${megabytes(storage)} of ${megabytes(limit)}`;
  if (storage <= 0.8 * limit) return ok("disk", text);
  const advice =
    "Raise the account's limit (max_file) if the disks have room, or lower FLAG_EVENTS_MAX_BYTES.";
  return storage > 0.95 * limit ? problem("disk", text, advice) : warning("disk", text, advice);
}

const megabytes = (bytes: number) => `${Math.round(bytes / 1_000_000).toLocaleString("en")} MB`;

type Seen = { service: string; id: string; version: string; stale: string[] };

/** Returns the last status of each process that reports within the time of listening. */
async function listen(connection: NatsConnection): Promise<Seen[]> {
  const seen = new Map<string, Seen>();
  const subscription = connection.subscribe(processStatuses.everySubject);
  const timer = setTimeout(() => subscription.unsubscribe(), listenMs);
  for await (const message of subscription) {
    const service = processStatuses.serviceOf(message.subject);
    if (service === undefined || message.data.length > processStatuses.maxBytes) continue;
    const checked = checkProcessStatus(parseOrUndefined(message.string()));
    if (!checked.ok) continue;
    const { id, version, followers } = checked.value;
    const stale = followers.filter(({ state }) => state !== "current").map(({ stream }) => stream);
    seen.set(id, { service, id, version, stale });
  }
  clearTimeout(timer);
  return [...seen.values()];
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function judgeProcesses(seen: readonly Seen[], version: string): Finding[] {
  const missing = serviceNames.filter((name) => !seen.some(({ service }) => service === name));
  const counts = serviceNames.map(
    (name) => `${seen.filter(({ service }) => service === name).length} ${name}`,
  );
  const stale = seen.flatMap(({ service, stale: streams }) =>
    streams.map((stream) => `a process of ${service} has not read all of ${stream}`),
  );
  const others = seen.filter((each) => each.version !== version);
  const versions = others.map((each) => `a process of ${each.service} is ${each.version}`);
  return [
    judged(
      "processes",
      `processes report: ${counts.join(", ")}`,
      missing.map((name) => `no process of ${name} reports`),
      "Start it, and look at the end of its log. Without the right to report, it is not seen either.",
    ),
    judged(
      "processes",
      "all of them have read their streams",
      stale,
      "See docs/runbooks.md#a-process-serves-old-data.",
    ),
    versions.length === 0
      ? ok("versions", `all processes are ${version}`)
      : warning(
          "versions",
          `this is ${version}, but ${versions.slice(0, 5).join("; ")}`,
          "Finish the upgrade, or run the doctor of the release that is deployed.",
        ),
  ];
}
