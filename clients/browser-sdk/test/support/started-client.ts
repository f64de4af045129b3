import { type Client, type ClientEvents, createClientIn } from "../../src/client.ts";
import type { ClientOptions } from "../../src/options.ts";
import type { Page } from "../../src/page.ts";
import { createManualClock, type ManualClock } from "./manual-clock.ts";

export const clientKey = `hc_abcdefghijklmnop_${"s".repeat(43)}`;

/** A client with a manual clock, and everything that it logged and emitted. */
type StartedClient = {
  client: Client;
  clock: ManualClock;
  page: FakePage;
  logged: string[];
  /** Names of events; a change with its keys and source. */
  events: string[];
};

type FakePage = Page & { show(state: "visible" | "hidden"): void };

const opened: Client[] = [];

export function startClient(options: Partial<ClientOptions> & { baseUrl: string }): StartedClient {
  const clock = createManualClock();
  const page = createFakePage();
  const logged: string[] = [];
  const events: string[] = [];
  const note = (line: string) => void logged.push(line);
  const client = createClientIn(
    { page, clock },
    { clientKey, logger: { warn: note, error: note }, storage: false, ...options },
  );
  opened.push(client);
  const names: (keyof ClientEvents)[] = ["current", "stale"];
  for (const name of names) client.on(name, () => void events.push(name));
  client.on("change", ({ keys, source }) => void events.push(`${source}: ${keys.join()}`));
  client.on("error", ({ kind }) => void events.push(`error: ${kind}`));
  return { client, clock, page, logged, events };
}

/** Closes all clients of a test. */
export function closeClients(): void {
  for (const client of opened.splice(0)) client.close();
}

function createFakePage(): FakePage {
  const document = Object.assign(new EventTarget(), { visibilityState: "visible" });
  return Object.assign(new EventTarget(), {
    document,
    show(state: "visible" | "hidden") {
      document.visibilityState = state;
      document.dispatchEvent(new Event("visibilitychange"));
    },
  });
}

/** A storage in memory. */
export function createMemoryStorage(): {
  getItem(name: string): string | null;
  setItem(name: string, value: string): void;
  text(): string;
} {
  const items = new Map<string, string>();
  return {
    getItem: (name) => items.get(name) ?? null,
    setItem: (name, value) => void items.set(name, value),
    text: () => JSON.stringify([...items]),
  };
}
