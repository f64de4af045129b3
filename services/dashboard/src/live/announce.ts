import type { AuditedChange } from "../api/schema.d.ts";
import { describeChange } from "../changes/describe-change.ts";
import type { Me } from "../session/session.tsx";
import { createPacer } from "./pacer.ts";

/** The first change is announced almost immediately. Changes that follow share one notice for each person. */
const pace = { collectMs: 500, everyMs: 5_000 };
/** Number of notices that people can read. The changes of more people become one notice. */
const maxNotices = 3;

/** Announces the changes of other people through `announce`, grouped by person. */
export function createAnnouncer(
  me: Pick<Me, "user" | "environments">,
  announce: (text: string) => void,
) {
  let collected: AuditedChange[] = [];
  const { request, stop } = createPacer(() => {
    noticesOf(collected, me.environments).forEach(announce);
    collected = [];
  }, pace);
  return {
    take(change: AuditedChange): void {
      if (change.actor.id === me.user.id) return;
      collected.push(change);
      request();
    },
    stop,
  };
}

type Environments = Me["environments"];

function noticesOf(
  changes: readonly AuditedChange[],
  environments: Environments,
): readonly string[] {
  const people = Map.groupBy(changes, ({ actor }) => actor.email);
  if (people.size > maxNotices) return [groupText(changes, `${people.size} people`)];
  return [...people].map(([email, made]) => {
    const texts = new Set(made.map((change) => sentenceOf(change, environments)));
    const [text] = texts;
    return texts.size === 1 ? `${email} ${text}` : groupText(made, email);
  });
}

/** Describes one change. The deletion of a flag has an entry for each environment, and one text. */
function sentenceOf(change: AuditedChange, environments: Environments): string {
  const environment = environments.find(({ id }) => id === change.environment_id)?.name;
  return describeChange(change, change.action === "deleted" ? undefined : environment);
}

/** Describes several changes: "5 flags were changed by ada@example.com". */
function groupText(changes: readonly AuditedChange[], who: string): string {
  const flags = new Set(changes.map(({ flag_key: key }) => key));
  if (flags.has(null)) return `${changes.length} changes were made by ${who}`;
  const [only] = flags;
  return flags.size === 1
    ? `${only} was changed ${changes.length} times by ${who}`
    : `${flags.size} flags were changed by ${who}`;
}
