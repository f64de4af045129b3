import { Link } from "@tanstack/react-router";
import type { Webhook } from "../api/schema.d.ts";
import { Badge } from "../ui/badge.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { Time } from "../ui/time.tsx";
import { useRecentDeliveries } from "./delivery-queries.ts";
import { summarizeRecent } from "./delivery-status.ts";
import { EnabledSwitch } from "./enabled-switch.tsx";
import { eventNames } from "./webhook-texts.ts";
import styles from "./webhooks.module.css";

/** Maximum number of webhooks whose deliveries the list reads, with a request for each. */
const maxSummaries = 25;

const columns: readonly Column<Webhook>[] = [
  { id: "name", header: "Webhook", cell: (webhook) => <NameAndUrl webhook={webhook} /> },
  { id: "events", header: "Events", cell: ({ events }) => <Events all={events} /> },
  {
    id: "signed",
    header: "Signed",
    cell: ({ has_secret: isSigned }) =>
      isSigned ? "Yes" : <Badge tone="warning">No secret</Badge>,
  },
  { id: "recent", header: "Latest deliveries", cell: ({ id }) => <Recent webhookId={id} /> },
  {
    id: "enabled",
    header: "Enabled",
    align: "end",
    cell: (webhook) => <EnabledSwitch webhook={webhook} isLabelHidden />,
  },
];

export function WebhookList({ webhooks }: { webhooks: readonly Webhook[] }) {
  const shown =
    webhooks.length > maxSummaries ? columns.filter(({ id }) => id !== "recent") : columns;
  return <Table label="Webhooks" columns={shown} rows={webhooks} />;
}

function NameAndUrl({ webhook }: { webhook: Webhook }) {
  return (
    <span className={styles.identity}>
      <Link
        to="/webhooks/$webhookId"
        params={{ webhookId: webhook.id }}
        className={styles.name ?? ""}
      >
        {webhook.name}
      </Link>
      <code className={styles.url}>{webhook.url}</code>
      {!webhook.enabled && (
        <span>
          <Badge>Disabled</Badge>
        </span>
      )}
    </span>
  );
}

/** The names of events. All events are one word, so that most rows stay short. */
export function Events({ all }: { all: Webhook["events"] }) {
  if (all.length === eventNames.length) return <Badge>All events</Badge>;
  return (
    <span className={styles.badges}>
      {all.map((event) => (
        <Badge key={event}>{event}</Badge>
      ))}
    </span>
  );
}

function Recent({ webhookId }: { webhookId: string }) {
  const { data: deliveries } = useRecentDeliveries(webhookId);
  if (deliveries === undefined) return null;
  const { text, tone } = summarizeRecent(deliveries);
  const [newest] = deliveries;
  return (
    <span className={styles.recent}>
      <Badge tone={tone}>{text}</Badge>
      {newest !== undefined && (
        <span className={styles.muted}>
          <Time at={newest.created_at} />
        </span>
      )}
    </span>
  );
}
