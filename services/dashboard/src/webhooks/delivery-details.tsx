import { RotateCcw } from "lucide-react";
import { adviceFor } from "../api/problem.ts";
import type { Delivery, DeliveryAttempt, DeliveryWithAttempts } from "../api/schema.d.ts";
import { usePermission } from "../session/use-permission.ts";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { CodeBlock } from "../ui/code-block.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Time } from "../ui/time.tsx";
import { notify } from "../ui/toasts.tsx";
import { useDelivery, useRedeliver } from "./delivery-queries.ts";
import styles from "./webhooks.module.css";

/** The payload and all attempts of a delivery. */
export function DeliveryDetails({ delivery }: { delivery: Delivery }) {
  const query = useDelivery(delivery);
  return (
    <div className={styles.details}>
      <QueryView query={query} label="Loading the delivery">
        {(loaded) => <Loaded delivery={loaded} />}
      </QueryView>
    </div>
  );
}

/** The event in words, or what changed and who changed it. */
function Summary({ payload }: Pick<DeliveryWithAttempts, "payload">) {
  if ("text" in payload) return <span className={styles.text}>{payload.text}</span>;
  const { email } = payload.triggered_by;
  if ("audience" in payload)
    return (
      <>
        the audience {payload.audience.key}, changed by {email}
      </>
    );
  return (
    <>
      {payload.flag.key} in <bdi>{payload.environment.name}</bdi>, changed by {email}
    </>
  );
}

function Loaded({ delivery }: { delivery: DeliveryWithAttempts }) {
  const { payload, attempts, next_attempt_at: next } = delivery;
  return (
    <>
      <div className={styles.detailsHead}>
        <p>
          <Summary payload={payload} />
        </p>
        <Redeliver delivery={delivery} />
      </div>
      {delivery.status === "retrying" && next !== null && (
        <p>
          Next attempt: <Time at={next} />
        </p>
      )}
      {attempts.length === 0 ? (
        <p className={styles.muted}>No attempt has ended yet.</p>
      ) : (
        <ol className={styles.attempts} aria-label="Attempts">
          {attempts.map((attempt, index) => (
            <Attempt key={attempt.attempted_at} attempt={attempt} number={index + 1} />
          ))}
        </ol>
      )}
      <CodeBlock title="Payload" code={JSON.stringify(payload, null, 2)} />
      <p className={styles.muted}>
        Delivery <code>{delivery.id}</code>, the <code>webhook-id</code> of every attempt
      </p>
    </>
  );
}

function Attempt({ attempt, number }: { attempt: DeliveryAttempt; number: number }) {
  const { status_code: status, error, response_body: body } = attempt;
  const isSuccess = error === null && status !== null && status >= 200 && status < 300;
  return (
    <li className={styles.attempt}>
      <div className={styles.attemptHead}>
        <span>Attempt {number}</span>
        <Badge tone={isSuccess ? "on" : "danger"}>
          {status === null ? "No response" : `Status ${status}`}
        </Badge>
        <span className={styles.muted}>{attempt.duration_ms} ms</span>
        <span className={styles.muted}>
          <Time at={attempt.attempted_at} />
        </span>
      </div>
      {error !== null && <p>{error}</p>}
      {body !== null && body !== "" && <CodeBlock title="Response body" code={body} wraps />}
    </li>
  );
}

/** A button that sends the delivery again. Hidden while an attempt is pending or in progress. */
function Redeliver({ delivery }: { delivery: Delivery }) {
  const { mutate, isPending } = useRedeliver(delivery.webhook_id);
  const { reason } = usePermission("change_webhooks");
  const { status } = delivery;
  if (status === "delivering" || status === "pending") return null;
  const redeliver = () =>
    mutate(delivery.id, {
      onSuccess: () => notify({ text: "The delivery is sent again now." }),
      onError: (error) =>
        notify({
          kind: "error",
          text: `The delivery was not sent again. ${error.message} ${adviceFor(error)}`,
        }),
    });
  return (
    <Button size="small" onPress={redeliver} isPending={isPending} whyNot={reason}>
      <RotateCcw size={14} aria-hidden /> {status === "retrying" ? "Retry now" : "Redeliver"}
    </Button>
  );
}
