import { Fragment, type ReactNode } from "react";
import type { Usage } from "../api/schema.d.ts";
import { Badge } from "../ui/badge.tsx";
import { LimitMeter } from "../ui/meter.tsx";
import { bytes } from "../ui/numbers.ts";
import { Card, Warning } from "../ui/panels.tsx";
import { addDays, datedDay, longDay } from "./months.ts";
import styles from "./usage.module.css";

/** The plan with its limits. */
export function PlanCard({ usage }: { usage: Usage }) {
  const { plan, period, ...limits } = usage;
  const { requests, sse_connections: streams, projects, configuration_bytes: rules } = limits;
  // A limit that the API adds does not compile until it is here.
  const meters: Readonly<Record<keyof typeof limits, ReactNode>> = {
    requests: <LimitMeter label="Requests this month" {...requests} />,
    sse_connections: <LimitMeter label="Open streams" {...streams} />,
    projects: <LimitMeter label="Projects" {...projects} isAlarming={false} />,
    configuration_bytes: <LimitMeter label="Rules of all flags" {...rules} format={bytes} />,
  };
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
          {Object.entries(meters).map(([name, meter]) => (
            <Fragment key={name}>{meter}</Fragment>
          ))}
        </div>
      </div>
    </Card>
  );
}
