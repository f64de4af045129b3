import type { Clock } from "./clock.ts";
import type { Edge, Received } from "./edge.ts";
import { firstState, nextStep, type Outcome } from "./next-step.ts";

/** Keeps the values of one user current until it is closed. */
export type Connection = {
  /** Connects again immediately, because the page came back or the network changed. */
  restart(): void;
  close(): void;
};

export type Activity = "connecting" | "streaming" | "polling" | "waiting" | "stopped";

export function openConnection(options: {
  edge: Edge;
  clock: Clock;
  /** Returns the tag of the current values. */
  tag: () => string | undefined;
  onValues: (received: Received | undefined) => void;
  onActivity: (activity: Activity) => void;
  /** Receives the outcome of each attempt. `stopped`: no further attempt follows. */
  onOutcome: (outcome: Outcome, stopped: boolean) => void;
}): Connection {
  const { edge, clock, onActivity, onOutcome } = options;
  let isOpen = true;
  /** Ends the current attempt and the wait after it. */
  let interrupt = () => {};

  async function attempt(polls: boolean, signal: AbortSignal): Promise<Outcome> {
    onActivity(polls ? "polling" : "connecting");
    return (polls ? edge.poll : edge.stream)({
      signal,
      tag: options.tag(),
      onValues(received) {
        // A response may arrive between the abort and its effect.
        if (signal.aborted) return;
        if (!polls) onActivity("streaming");
        options.onValues(received);
      },
    });
  }

  async function run(): Promise<void> {
    let state = firstState(edge.streams);
    while (isOpen) {
      const abort = new AbortController();
      const { signal } = abort;
      interrupt = () => abort.abort();
      const outcome = await attempt(state.polls > 0, signal);
      if (!signal.aborted) {
        const step = nextStep(state, outcome, clock.random());
        onOutcome(outcome, step === "stop");
        if (step === "stop") {
          onActivity("stopped");
          return;
        }
        state = step.state;
        // A listener may have closed or restarted the connection.
        if (step.waitMs > 0 && !signal.aborted) {
          onActivity("waiting");
          await wait(clock, step.waitMs, signal);
        }
      }
      if (signal.aborted) state = firstState(edge.streams);
    }
  }

  void run();
  return {
    restart: () => interrupt(),
    close() {
      isOpen = false;
      interrupt();
    },
  };
}

/** Resolves after the time, or when the signal aborts. */
function wait(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(ms, resolve);
    signal.addEventListener("abort", () => {
      cancel();
      resolve();
    });
  });
}
