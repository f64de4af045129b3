import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { ProgressBar } from "react-aria-components";
import { Button } from "../ui/button.tsx";
import { Dialog, DialogActions } from "../ui/dialog.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { useRedeliverySource } from "./delivery-queries.ts";
import { type Redelivery, redeliverFailed } from "./redeliver-failed.ts";
import styles from "./webhooks.module.css";

type Props = { webhookId: string; onClose: () => void };

type Run =
  | { state: "ready" }
  | { state: "running"; progress: Redelivery }
  | { state: "ended"; progress: Redelivery; how: "done" | "cancelled" }
  | { state: "ended"; progress: Redelivery; how: "failed"; error: unknown };

function useRun(webhookId: string) {
  const [run, setRun] = useState<Run>({ state: "ready" });
  const source = useRedeliverySource(webhookId);
  const client = useQueryClient();
  const ending = useRef<AbortController>(undefined);
  useEffect(() => () => ending.current?.abort(), []);

  async function start(): Promise<void> {
    const controller = new AbortController();
    ending.current = controller;
    let progress: Redelivery = { redelivered: 0, found: 0, hasMore: true };
    const report = (now: Redelivery) => {
      progress = now;
      setRun({ state: "running", progress });
    };
    report(progress);
    try {
      await redeliverFailed(source, controller.signal, report);
      const how = controller.signal.aborted ? "cancelled" : "done";
      setRun({ state: "ended", progress, how });
    } catch (error) {
      setRun({ state: "ended", progress, how: "failed", error });
    }
    await client.invalidateQueries({ queryKey: ["deliveries", webhookId] });
  }
  return { run, start: () => void start(), cancel: () => ending.current?.abort() };
}

/** Redelivers all failed deliveries of a webhook, with progress. Closing it ends the work. */
export function RedeliverFailedDialog({ webhookId, onClose }: Props) {
  const { run, start, cancel } = useRun(webhookId);
  return (
    <Dialog title="Redeliver all failed deliveries" onClose={onClose}>
      {run.state === "ready" && (
        <p>
          Every failed delivery gets one more attempt now, with the same payload and ids. Do it when
          the receiver works again, and expect up to 50 requests per second. One that fails again
          stays failed.
        </p>
      )}
      {run.state === "running" && <Progress progress={run.progress} />}
      {run.state === "ended" && (
        <div role="status">
          <p>{summaryOf(run)}</p>
          {run.how === "failed" && <ErrorPanel error={run.error} />}
        </div>
      )}
      <DialogActions>
        {run.state === "ready" && (
          <>
            <Button onPress={onClose}>Cancel</Button>
            <Button variant="primary" onPress={start}>
              Redeliver
            </Button>
          </>
        )}
        {run.state === "running" && (
          <Button onPress={cancel} autoFocus>
            Stop
          </Button>
        )}
        {run.state === "ended" && (
          <Button variant="primary" onPress={onClose} autoFocus>
            Close
          </Button>
        )}
      </DialogActions>
    </Dialog>
  );
}

function Progress({ progress: { redelivered, found, hasMore } }: { progress: Redelivery }) {
  const text = `${redelivered} of ${found}${hasMore ? " or more" : ""}`;
  return (
    <ProgressBar
      aria-label="Redelivering"
      value={redelivered}
      maxValue={Math.max(1, found)}
      valueLabel={text}
      className={styles.progress ?? ""}
    >
      {({ percentage }) => (
        <>
          <p>Redelivering {text}</p>
          <div className={styles.bar}>
            <div className={styles.fill} style={{ width: `${percentage ?? 0}%` }} />
          </div>
        </>
      )}
    </ProgressBar>
  );
}

/** Says how many deliveries are sent again, and why not all. */
function summaryOf({ progress, how }: Extract<Run, { state: "ended" }>): string {
  const { redelivered, found } = progress;
  const sent =
    redelivered === 1 ? "1 delivery is sent again." : `${redelivered} deliveries are sent again.`;
  if (how === "done")
    return found === 0
      ? "No delivery has failed."
      : `${sent} Those that fail again are listed as failed.`;
  return `${sent} The others stay failed.`;
}
