import { setPriority } from "node:os";
import { nowMs } from "../clock.ts";
import { answerParent } from "../processes/answer-parent.ts";
import type { HerdQuestion, Refetches } from "./herd.ts";
import { openRefetchingClient } from "./refetching-client.ts";

/**
 * The clients have a lower priority than the polling client, because they share a core here but not in
 * reality.
 */
const behindOthers = 10;
setPriority(behindOthers);

const openingAtOnce = 50;
/** Timeout of a refetch. A later response counts as lost. */
const timeoutMs = 20_000;

let clients = 0;
let seen: Refetches = none();
let complete = Promise.withResolvers<void>();

answerParent<HerdQuestion>({
  greeting: {},
  async answer(question) {
    switch (question.kind) {
      case "open":
        clients = question.clients;
        await openAll(question);
        return {};
      case "arm":
        seen = none();
        complete = Promise.withResolvers<void>();
        return {};
      case "refetches": {
        const late = setTimeout(() => complete.reject(new Error(missing())), timeoutMs);
        await complete.promise;
        clearTimeout(late);
        return seen;
      }
    }
  },
});

function none(): Refetches {
  return { moments: [], unchanged: 0, errors: 0 };
}

function missing(): string {
  return `${clients - seen.moments.length} of ${clients} clients did not evaluate again`;
}

async function openAll({
  url,
  key,
  clients: count,
}: {
  url: string;
  key: string;
  clients: number;
}) {
  let number = 0;
  async function openInTurn(): Promise<void> {
    while (number < count) {
      number += 1;
      await openRefetchingClient({ url, key, number, onRefetched });
    }
  }
  await Promise.all(Array.from({ length: openingAtOnce }, openInTurn));
}

function onRefetched(status: number): void {
  seen.moments.push(nowMs());
  if (status === 304) seen.unchanged += 1;
  else if (status !== 200) seen.errors += 1;
  if (seen.moments.length === clients) complete.resolve();
}
