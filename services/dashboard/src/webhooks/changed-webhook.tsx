import { type ReactNode, useState } from "react";
import { isEditConflict } from "../api/problem.ts";
import type { Webhook } from "../api/schema.d.ts";
import { describeChange } from "../changes/describe-change.ts";
import { Warning } from "../ui/panels.tsx";
import { Time } from "../ui/time.tsx";
import { differencesOf } from "./webhook-edits.ts";
import { useChangesSince } from "./webhook-queries.ts";

/**
 * Keeps the webhook as the person saw it when a dialog opened: a change of somebody else may replace what is behind the
 * dialog at any time. After a conflict they have seen the current webhook, and the next attempt is upon that one.
 */
export function useSeen(
  webhook: Webhook,
  error: unknown,
): { seen: Webhook; notice: ReactNode; error: unknown } {
  const [first] = useState(webhook);
  if (!isEditConflict(error)) return { seen: first, notice: null, error };
  const notice = (
    <ChangedWebhook seen={first} current={webhook}>
      Do it again if you still want to.
    </ChangedWebhook>
  );
  return { seen: webhook, notice, error: null };
}

/** Says that somebody else changed a webhook meanwhile, who it was, and what is different now. */
export function ChangedWebhook({
  seen,
  current,
  action,
  children,
}: {
  seen: Webhook;
  current: Webhook;
  action?: ReactNode;
  /** What the person can do. */
  children: ReactNode;
}) {
  const changes = useChangesSince(seen);
  const differences = differencesOf(seen, current);
  return (
    <Warning action={action}>
      <p>Somebody changed this webhook meanwhile, so nothing was saved.</p>
      <ul>
        {changes.map((change) => (
          <li key={change.id}>
            {change.actor.email} {describeChange(change)}, <Time at={change.changed_at} />
          </li>
        ))}
        {differences.map((difference) => (
          <li key={difference}>Now {difference}</li>
        ))}
      </ul>
      <p>{children}</p>
    </Warning>
  );
}
