import type { Usage } from "../api/schema.d.ts";
import { Badge } from "../ui/badge.tsx";
import { LimitMeter } from "../ui/meter.tsx";
import { Card, Warning } from "../ui/panels.tsx";
import { addDays, datedDay, longDay } from "./months.ts";
import styles from "./usage.module.css";

/** The plan with its three limits. */
export function PlanCard({ usage }: { usage: Usage }) {
  const { plan, period, requests, sse_connections: streams, projects } = usage;
  const start = period.start.slice(0, 10);
  const end = period.end.slice(0, 10);
  const isUsedUp = requests.limit !== null && requests.used >= requests.limit;
  return (
    <Card
      title={
        <>
          Plan <Badge tone="accent">{plan}</Badge>
        </>
      }
      actions={
        <span className={styles.note}>
          {longDay(start)} to {datedDay(addDays(end, -1))}, UTC
        </span>
      }
    >
      <div className={styles.section}>
        {isUsedUp && (
          <Warning>
            The requests of this month are used up. Halyard rejects further ones with 429, and your
            applications keep the values that they have. Requests work again on {longDay(end)}, or
            as soon as the operator chooses a larger plan.
          </Warning>
        )}
        <div className={styles.limits}>
          <LimitMeter label="Requests this month" used={requests.used} limit={requests.limit} />
          <LimitMeter label="Open streams" used={streams.used} limit={streams.limit} />
          <LimitMeter
            label="Projects"
            used={projects.used}
            limit={projects.limit}
            isAlarming={false}
          />
        </div>
      </div>
    </Card>
  );
}
