import { useSearch } from "@tanstack/react-router";
import { ChevronRight, Inbox, RotateCcw } from "lucide-react";
import { useState } from "react";
import { Disclosure, DisclosurePanel, Heading, Button as PlainButton } from "react-aria-components";
import type { Delivery, DeliveryStatus } from "../api/schema.d.ts";
import { useKeySession } from "../session/session.tsx";
import { usePermission } from "../session/use-permission.ts";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { useChangeSearch } from "../ui/change-search.ts";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Select } from "../ui/fields.tsx";
import { Card, EmptyState, Loading } from "../ui/panels.tsx";
import { Time } from "../ui/time.tsx";
import { DeliveryDetails } from "./delivery-details.tsx";
import { useDeliveries } from "./delivery-queries.ts";
import { attemptsText, type DeliverySearch, statusTexts } from "./delivery-status.ts";
import { RedeliverFailedDialog } from "./redeliver-failed-dialog.tsx";
import styles from "./webhooks.module.css";

/** The deliveries of a webhook, newest first, with a filter by status. */
export function Deliveries({ webhookId }: { webhookId: string }) {
  const { status } = useSearch({ from: "/webhooks/$webhookId" });
  const { reason } = usePermission("change_webhooks");
  const [isRedelivering, setRedelivering] = useState(false);
  const list = useDeliveries(webhookId, status);
  const failed = useDeliveries(webhookId, "failed");
  // The list is the newer one: it is read again while deliveries are in progress.
  const hasFailed = [list, failed].some(({ data }) => deliveriesOf(data).some(hasStatusFailed));
  return (
    <Card
      title="Deliveries"
      actions={
        <div className={styles.actions}>
          <StatusFilter status={status} />
          {hasFailed && (
            <Button onPress={() => setRedelivering(true)} whyNot={reason}>
              <RotateCcw size={16} aria-hidden /> Redeliver all failed
            </Button>
          )}
        </div>
      }
    >
      <DeliveryList key={status ?? "all"} query={list} status={status} />
      {isRedelivering && (
        <RedeliverFailedDialog webhookId={webhookId} onClose={() => setRedelivering(false)} />
      )}
    </Card>
  );
}

type DeliveriesQuery = ReturnType<typeof useDeliveries>;

const deliveriesOf = (data: DeliveriesQuery["data"]) =>
  data?.pages.flatMap((page) => page.deliveries) ?? [];

const hasStatusFailed = ({ status }: Delivery) => status === "failed";

const statusOptions = Object.entries(statusTexts).map(([value, { label }]) => ({
  value: value as DeliveryStatus,
  label,
}));

function StatusFilter({ status }: { status: DeliveryStatus | undefined }) {
  const filter = useChangeSearch<DeliverySearch>();
  return (
    <Select
      label="Status"
      isLabelHidden
      value={status ?? "all"}
      onChange={(chosen) => filter({ status: chosen === "all" ? undefined : chosen })}
      options={[{ value: "all", label: "All statuses" }, ...statusOptions]}
    />
  );
}

type DeliveryListProps = { query: DeliveriesQuery; status: DeliveryStatus | undefined };

function DeliveryList({ query, status }: DeliveryListProps) {
  const { data, error, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = query;
  const deliveries = deliveriesOf(data);
  return (
    <div className={styles.deliveries}>
      {error !== null && <ErrorPanel error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Loading label="Loading the deliveries" />}
      {data !== undefined && deliveries.length === 0 && <NoDeliveries status={status} />}
      {deliveries.length > 0 && (
        <ul className={styles.list} aria-label="Deliveries">
          {deliveries.map((delivery) => (
            <DeliveryRow key={delivery.id} delivery={delivery} />
          ))}
        </ul>
      )}
      {hasNextPage && (
        <div>
          <Button onPress={() => void fetchNextPage()} isPending={isFetchingNextPage}>
            Load older
          </Button>
        </div>
      )}
    </div>
  );
}

function NoDeliveries({ status }: { status: DeliveryStatus | undefined }) {
  const label = status && statusTexts[status].label.toLowerCase();
  return (
    <EmptyState icon={Inbox} title={label ? `No ${label} deliveries` : "No deliveries yet"}>
      {label
        ? "Choose another status to see other deliveries."
        : "Change a flag, and its delivery appears here. Deliveries are kept for 30 days, unless the operator chose another time."}
    </EmptyState>
  );
}

/** The subject of a delivery. */
function Subject({ delivery }: { delivery: Delivery }) {
  const { flag_key: flagKey, environment_id: environmentId, audience_key: audienceKey } = delivery;
  const { me } = useKeySession();
  if (audienceKey !== undefined) return <>the audience {audienceKey}</>;
  if (environmentId === null) return <>a change request</>;
  const environment = me.environments.find(({ id }) => id === environmentId);
  const name = <bdi>{environment?.name ?? "a deleted environment"}</bdi>;
  return flagKey === null ? (
    name
  ) : (
    <>
      {flagKey} in {name}
    </>
  );
}

function DeliveryRow({ delivery }: { delivery: Delivery }) {
  const { status, event } = delivery;
  const { label, tone } = statusTexts[status];
  return (
    <li>
      <Disclosure>
        {({ isExpanded }) => (
          <>
            <Heading level={3} className={styles.row ?? ""}>
              <PlainButton slot="trigger" className={styles.trigger ?? ""}>
                <ChevronRight
                  size={16}
                  aria-hidden
                  className={`${styles.chevron} ${isExpanded ? styles.expanded : ""}`}
                />
                <span className={styles.status}>
                  <Badge tone={tone}>{label}</Badge>
                </span>
                <code>{event}</code>
                <span className={styles.muted}>
                  <Subject delivery={delivery} />
                </span>
                <span className={styles.muted}>{attemptsText(delivery)}</span>
              </PlainButton>
              <span className={styles.muted}>
                <Time at={delivery.created_at} />
              </span>
            </Heading>
            <DisclosurePanel>
              {isExpanded && <DeliveryDetails delivery={delivery} />}
            </DisclosurePanel>
          </>
        )}
      </Disclosure>
    </li>
  );
}
