import { EventSourceParserStream } from "eventsource-parser/stream";
import type { AuditedChange } from "../api/schema.d.ts";

/** `lost`: several attempts to connect have failed. */
export type LiveState = "connecting" | "live" | "lost";

type FollowOptions = {
  url: string;
  /** Headers of the caller. */
  headers: Readonly<Record<string, string>>;
  onChange: (change: AuditedChange) => void;
  /** A flag changed by an entry that the key cannot read. */
  onFlagChanged: (flagKey: string) => void;
  /** Changes were missed, so everything that is shown must be read again. */
  onReset: () => void;
  onState: (state: LiveState) => void;
  /** The server no longer accepts the key. This ends following. */
  onRejected: () => void;
  /** The caller may not view the project, or no longer. */
  onForbidden: () => void;
  signal: AbortSignal;
};

/** Longest silence of a working stream. Its heartbeats come every 15 s. */
const maxSilenceMs = 40_000;
const firstPauseMs = 500;
const maxPauseMs = 15_000;
/** Failed attempts after which the connection counts as lost. */
const lostAfterFailures = 2;

/**
 * Follows the changes of a project until the signal is aborted. After an interruption it resumes behind the last change
 * that it received. It does not return while the server is unavailable.
 *
 * A hidden tab has no stream, and resumes when it is shown. Browsers open at most six connections to a server without
 * HTTP/2, for all tabs together, so the streams of six tabs would leave none for any request.
 */
export async function followChanges(options: FollowOptions): Promise<void> {
  const { signal, onState } = options;
  let lastId: string | undefined;
  let failures = 0;
  while (!signal.aborted) {
    await untilVisible(signal);
    if (signal.aborted) return;
    onState(failures < lostAfterFailures ? "connecting" : "lost");
    const ended = await readStream(options, lastId, (id) => {
      // Data that was read before the stream began may have changed.
      if (lastId === undefined) options.onReset();
      lastId = id;
      failures = 0;
    });
    if (signal.aborted) return;
    if (ended === "rejected") return options.onRejected();
    failures = ended === "opened" || document.hidden ? 0 : failures + 1;
    await pauseBefore(failures, signal);
  }
}

type FlagChanged = { flag_id: string; flag_key: string };

type Ended = "rejected" | "failed" | "opened";

async function readStream(
  { url, headers, onChange, onFlagChanged, onReset, onState, onForbidden, signal }: FollowOptions,
  lastId: string | undefined,
  moved: (id: string) => void,
): Promise<Ended> {
  const silence = createWatchdog(signal);
  try {
    const response = await fetch(url, {
      headers: { ...headers, ...(lastId && { "Last-Event-ID": lastId }) },
      signal: silence.signal,
      cache: "no-store",
    });
    if (response.status === 401) return "rejected";
    if (response.status === 403 || response.status === 404) onForbidden();
    if (!response.ok || response.body === null) return "failed";
    onState("live");
    const events = response.body
      .pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream());
    for await (const { event, id, data } of events as unknown as AsyncIterable<{
      event?: string;
      id?: string;
      data: string;
    }>) {
      silence.reset();
      // Before the change is used: one that fails must not be read again and again.
      if (id !== undefined) moved(id);
      if (event === "change") onChange(JSON.parse(data) as AuditedChange);
      if (event === "flag_changed") onFlagChanged((JSON.parse(data) as FlagChanged).flag_key);
      if (event === "reset") onReset();
    }
    return "opened";
  } catch {
    // The network broke, or the stream was silent for too long. Both are repaired by the next attempt.
    return silence.wasReset() ? "opened" : "failed";
  } finally {
    silence.stop();
  }
}

function untilVisible(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const check = () => {
    if (!document.hidden || signal.aborted) resolve();
  };
  document.addEventListener("visibilitychange", check);
  signal.addEventListener("abort", check);
  check();
  return promise.finally(() => {
    document.removeEventListener("visibilitychange", check);
    signal.removeEventListener("abort", check);
  });
}

/** Aborts its signal after a silence, when the browser goes offline or the tab is hidden, or with the outer signal. */
function createWatchdog(outer: AbortSignal) {
  const controller = new AbortController();
  const abort = () => controller.abort();
  const abortIfHidden = () => document.hidden && abort();
  window.addEventListener("offline", abort);
  document.addEventListener("visibilitychange", abortIfHidden);
  let timer = setTimeout(abort, maxSilenceMs);
  let hasReset = false;
  return {
    signal: AbortSignal.any([outer, controller.signal]),
    reset() {
      hasReset = true;
      clearTimeout(timer);
      timer = setTimeout(abort, maxSilenceMs);
    },
    wasReset: () => hasReset,
    stop() {
      clearTimeout(timer);
      window.removeEventListener("offline", abort);
      document.removeEventListener("visibilitychange", abortIfHidden);
    },
  };
}

/** Waits with backoff and jitter. It ends early when the browser is online again. */
function pauseBefore(failures: number, signal: AbortSignal): Promise<void> {
  const limit = Math.min(maxPauseMs, firstPauseMs * 2 ** failures);
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, limit * (0.5 + Math.random() / 2));
  const wake = () => resolve();
  window.addEventListener("online", wake);
  signal.addEventListener("abort", wake);
  return promise.finally(() => {
    clearTimeout(timer);
    window.removeEventListener("online", wake);
    signal.removeEventListener("abort", wake);
  });
}
