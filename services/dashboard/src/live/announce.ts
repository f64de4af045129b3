import type { AuditedChange, ServerKeyIdentity } from "../api/schema.d.ts";
import { describeChange } from "../changes/describe-change.ts";
import { notify } from "../ui/toasts.tsx";

/** Time over which changes are collected. */
const collectMs = 500;
/** Number of notices that people can read. More changes become one notice for each person. */
const maxNotices = 3;

/** Announces the changes of other people. A script that changes many flags causes one notice, not hundreds. */
export function createAnnouncer(me: ServerKeyIdentity) {
  let collected: AuditedChange[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;

  function announce(): void {
    timer = undefined;
    for (const text of noticesOf(collected, me.environments)) notify({ text });
    collected = [];
  }

  return {
    take(change: AuditedChange): void {
      if (change.actor.id === me.user.id) return;
      collected.push(change);
      timer ??= setTimeout(announce, collectMs);
    },
    stop: () => clearTimeout(timer),
  };
}

/** Returns the texts that announce changes. The deletion of a flag has an entry for each environment, and one text. */
function noticesOf(
  changes: readonly AuditedChange[],
  environments: ServerKeyIdentity["environments"],
): readonly string[] {
  const texts = new Set(
    changes.map((change) => {
      const environment =
        change.action === "deleted"
          ? undefined
          : environments.find(({ id }) => id === change.environment_id)?.name;
      return `${change.actor.email} ${describeChange(change, environment)}`;
    }),
  );
  if (texts.size <= maxNotices) return [...texts];
  const people = Map.groupBy(changes, ({ actor }) => actor.email);
  return [...people].map(([email, made]) => `${email} made ${made.length} changes`);
}
