import type { ServerResponse } from "node:http";
import { createProblem, heartbeatEvent, keepAlive, type Problem, retryLine } from "@halyard/http";
import { isOutage, type Sql } from "@halyard/postgres";
import { createWakeUp, pause } from "@halyard/timing";
import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import { readKeyEnds } from "../keys/key-store.ts";
import {
  ChangeStream,
  eventOf,
  type Opening,
  operatorCaller,
  resetEvent,
} from "./change-stream.ts";
import { type Feed, type Newest, readNewest, readPageAfter } from "./feed-store.ts";

/**
 * The open streams of changes of this process. While there are any, one loop reads the audit log: after a hint that
 * something was written, and twice a second in case a hint was lost. Each round reads the newest sequence of every
 * feed, and then the new entries of each feed once for all of its streams. The entries of an organization are committed
 * in the order of their sequences (`recordAudit`), so no earlier entry can appear afterwards.
 *
 * Every stream has a position. It sends the entries in the order of their sequences, so the id of the last one is
 * enough to resume a stream in any process, without losses and without duplicates. A stream whose client reads slowly
 * keeps its position, and nothing is buffered for it.
 *
 * While PostgreSQL is unavailable, streams stay open, and then continue from their positions.
 */
export type ChangeStreams = {
  /** Returns the problem of a caller that cannot open another stream. */
  checkRoom(caller: Pick<Opening, "caller" | "feed">): Problem | undefined;
  /** Begins the body of a response whose head is set. Ends it if there is no room any more. */
  open(response: ServerResponse, opening: Opening): void;
  /** Reads the audit log soon, because something was written. */
  wake(): void;
  /** Rejects new streams, and ends the open ones so that their clients connect to other processes. */
  drain(): Promise<void>;
  stop(): Promise<void>;
};

/**
 * Maximum number of streams of the API keys and sessions of one organization, and of the operator. An organization can issue itself
 * further keys, so a limit of each key would leave no streams for others.
 */
const maxStreamsPerOwner = 100;
/** Each stream can hold a page of entries in memory. */
const maxStreams = 1_000;

/** Interval of reads without hints. It is also the maximum delay until a stream ends with its key, session or role. */
const pollIntervalMs = 500;
/** Minimum pause between two reads, so that many hints cause few reads. */
const minPauseMs = 20;
/** Interval of looking for expired keys, slow readers and due heartbeats. */
const upkeepIntervalMs = 500;
const heartbeatIntervalMs = 15_000;

export function createChangeStreams(options: {
  sql: Sql;
  now: () => Date;
  monotonicMs: () => number;
  random?: () => number;
  metrics: Registry;
  logger: Logger;
}): ChangeStreams {
  const { now, monotonicMs, random = Math.random, logger } = options;
  const streams = new Set<ChangeStream>();
  const wakeUp = createWakeUp();
  const stopping = new AbortController();
  const reader = createReader({ ...options, wake: wakeUp.wake });
  let running: Promise<void> | undefined;
  let isDraining = false;
  registerGauge(options.metrics, streams);

  async function run(): Promise<void> {
    const work = () => maintain(streams, { nowMs: +now(), monotonicMs: monotonicMs() });
    const upkeep = setInterval(work, upkeepIntervalMs);
    let isFailing = false;
    while (streams.size > 0 && !stopping.signal.aborted) {
      try {
        await reader.readFor([...streams]);
        isFailing = false;
      } catch (err) {
        if (!isOutage(err)) throw err;
        if (!isFailing) logger.warn({ err }, "streams of changes wait for PostgreSQL");
        isFailing = true;
      }
      await pause(minPauseMs, stopping.signal);
      await wakeUp.sleep(pollIntervalMs, stopping.signal);
    }
    clearInterval(upkeep);
    running = undefined;
  }

  const checkRoom: ChangeStreams["checkRoom"] = (caller) =>
    isDraining ? processIsStopping : checkLimits(streams, caller);

  return {
    checkRoom,
    open(response, opening) {
      // Others may have opened since the first check. The head is sent, so the client gets the problem when it reconnects.
      if (checkRoom(opening) !== undefined || response.destroyed) {
        response.end(retryLine(random));
        return;
      }
      const stream = new ChangeStream(response, opening, monotonicMs());
      response.write(retryLine(random));
      const { resume } = opening;
      if (resume !== undefined && "reset" in resume) response.write(resetEvent(resume.reset));
      streams.add(stream);
      response.once("close", () => streams.delete(stream));
      wakeUp.wake();
      running ??= run();
    },
    wake: wakeUp.wake,
    async drain() {
      isDraining = true;
      for (const stream of streams) stream.end(retryLine(random));
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function checkLimits(
  streams: ReadonlySet<ChangeStream>,
  caller: Pick<Opening, "caller" | "feed">,
): Problem | undefined {
  if (streams.size >= maxStreams) return tooManyStreams;
  const owner = ownerOf(caller);
  const own = [...streams].filter((stream) => ownerOf(stream) === owner).length;
  return own >= maxStreamsPerOwner ? tooManyOfOwner : undefined;
}

function createReader(options: {
  sql: Sql;
  now: () => Date;
  monotonicMs: () => number;
  wake: () => void;
}) {
  const { sql, now } = options;

  /** Ends the streams whose key was revoked or has expired. */
  async function endStreamsOfEndedKeys(streams: readonly ChangeStream[]): Promise<void> {
    const ofKeys = streams.filter(
      ({ caller, isOfSession }) => caller !== operatorCaller && !isOfSession,
    );
    const ends = await readKeyEnds(sql, [...new Set(ofKeys.map(({ caller }) => caller))]);
    for (const stream of ofKeys)
      if (ends.has(stream.caller)) stream.expiresAtMs = ends.get(stream.caller)?.getTime();
      else stream.end();
    endExpired(streams, now().getTime());
  }

  /** Ends the streams whose session has ended, or whose caller may no longer view the project. */
  async function endStreamsOfLostRoles(streams: readonly ChangeStream[]): Promise<void> {
    const open = streams.filter(({ isOpen }) => isOpen);
    const groups = Map.groupBy(open, ({ caller, feed }) => `${caller} ${feed.projectId}`);
    for (const group of groups.values())
      if (!(await group[0]?.mayContinue())) for (const stream of group) stream.end();
  }

  async function sendNew(members: readonly ChangeStream[], feed: Feed, newest: Newest) {
    for (const stream of members) stream.position ??= newest.sequence;
    const groups = Map.groupBy(members, (stream) => stream.position as number);
    for (const [position, group] of groups)
      await sendAfter(options, position, group, { feed, upTo: newest.sequence });
    for (const stream of members)
      if (!stream.isCaughtUp && stream.position === newest.sequence && stream.isOpen) {
        stream.isCaughtUp = true;
        stream.response.write(heartbeatEvent(now().getTime(), { id: newest.entryId }));
      }
    if (!newest.projectExists) endComplete(members, newest.sequence);
  }

  return {
    /** Reads for the streams that were open at the time of the call. A later stream may be ahead of this read. */
    async readFor(streams: readonly ChangeStream[]): Promise<void> {
      const feedOf = new Map(streams.map(({ feed }) => [keyOf(feed), feed]));
      const feeds = [...feedOf.values()];
      const rows = await readNewest(sql, feeds);
      const newestOf = new Map(feeds.map((feed, at) => [keyOf(feed), rows[at] as Newest]));
      // These follow the reading of the newest entries, so that no entry after a revocation is sent.
      await endStreamsOfEndedKeys(streams);
      await endStreamsOfLostRoles(streams);
      resetIfRestored(streams, newestOf);
      const open = Map.groupBy(
        streams.filter(({ isOpen }) => isOpen),
        ({ feed }) => keyOf(feed),
      );
      for (const [key, members] of open)
        await sendNew(members, feedOf.get(key) as Feed, newestOf.get(key) as Newest);
    },
  };
}

/** Sends the entries after a position, up to the newest one, to the open streams. */
async function sendAfter(
  { sql, monotonicMs, wake }: { sql: Sql; monotonicMs: () => number; wake: () => void },
  position: number,
  members: readonly ChangeStream[],
  { feed, upTo }: { feed: Feed; upTo: number },
): Promise<void> {
  // A client that falls behind is waited for by event and not by the next read, because a client that has read everything
  // must not be disconnected while PostgreSQL is unavailable.
  const isReady = (stream: ChangeStream) => stream.hasRoomOrFallsBehind(monotonicMs(), wake);
  let receivers = members.filter(isReady);
  for (let after = position; after < upTo && receivers.length > 0; ) {
    const page = await readPageAfter(sql, feed, { after, upTo });
    // A page is empty if retention has removed its entries.
    after = page.at(-1)?.sequence ?? upTo;
    const events = Buffer.from(page.map((entry) => eventOf(entry, feed)).join(""));
    for (const stream of receivers) {
      if (stream.isOpen) stream.response.write(events);
      stream.position = after;
    }
    receivers = receivers.filter(isReady);
  }
}

const ownerOf = ({ caller, feed }: Pick<Opening, "caller" | "feed">) =>
  caller === operatorCaller ? operatorCaller : feed.organizationId;

const keyOf = ({ projectId, environmentId = "" }: Feed) => `${projectId} ${environmentId}`;

/**
 * Resets streams that have sent entries that do not exist: the database was restored from a backup. Later entries get
 * the same sequences again.
 */
function resetIfRestored(
  streams: readonly ChangeStream[],
  newestOf: ReadonlyMap<string, Newest>,
): void {
  for (const stream of streams) {
    const { sequence } = newestOf.get(keyOf(stream.feed)) as Newest;
    if (!stream.isOpen || stream.position === undefined || stream.position <= sequence) continue;
    stream.response.write(resetEvent("database_restored"));
    stream.position = undefined;
    stream.isCaughtUp = false;
  }
}

/** Ends the streams that have sent everything. The others follow in a later round. */
function endComplete(streams: readonly ChangeStream[], sequence: number): void {
  for (const stream of streams) {
    const isSent = stream.position === sequence && stream.response.writableLength === 0;
    if (stream.isOpen && isSent) stream.end();
  }
}

function endExpired(streams: Iterable<ChangeStream>, nowMs: number): void {
  for (const stream of streams)
    if (stream.isOpen && stream.expiresAtMs !== undefined && stream.expiresAtMs <= nowMs)
      stream.end();
}

/** Does the work that does not need PostgreSQL. */
function maintain(
  streams: ReadonlySet<ChangeStream>,
  { nowMs, monotonicMs }: { nowMs: number; monotonicMs: number },
): void {
  endExpired(streams, nowMs);
  for (const stream of streams) {
    if (stream.isFarBehind(monotonicMs)) stream.response.destroy();
    if (monotonicMs - stream.heartbeatMs < heartbeatIntervalMs || !stream.hasRoom) continue;
    stream.heartbeatMs = monotonicMs;
    stream.response.write(stream.isCaughtUp ? heartbeatEvent(nowMs) : keepAlive);
  }
}

function registerGauge(metrics: Registry, streams: ReadonlySet<ChangeStream>): void {
  new Gauge({
    name: "halyard_change_streams_open",
    help: "Open streams of changes.",
    registers: [metrics],
    collect() {
      this.set(streams.size);
    },
  });
}

/** Closes the connection, because a gateway sends the request to another process only then. */
const processIsStopping = createProblem(
  "SERVER_002",
  "This process of management is stopping; connect again.",
  { connection: "close" },
);

const tooManyStreams = createProblem(
  "SERVER_002",
  `This process of management has ${maxStreams} open streams of changes; retry later.`,
);

const tooManyOfOwner = createProblem(
  "RATE_001",
  `Too many streams of changes of this organization: at most ${maxStreamsPerOwner} in each process. Close others first.`,
);
