import { CircleCheck, CircleX, Send } from "lucide-react";
import type { WebhookTestResult } from "../api/schema.d.ts";
import { usePermission } from "../session/use-permission.ts";
import { Button } from "../ui/button.tsx";
import { CodeBlock } from "../ui/code-block.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Card } from "../ui/panels.tsx";
import { useTestWebhook } from "./webhook-queries.ts";
import { explainFailure } from "./webhook-texts.ts";
import styles from "./webhooks.module.css";

/** Sends a test payload on request, and shows the result. */
export function TestWebhook({ webhookId }: { webhookId: string }) {
  const { mutate, isPending, data, error } = useTestWebhook(webhookId);
  const { reason } = usePermission("change_webhooks");
  return (
    <Card
      title="Test"
      actions={
        <Button onPress={() => mutate()} isPending={isPending} whyNot={reason}>
          <Send size={16} aria-hidden /> {isPending ? "Waiting for a response" : "Send a test"}
        </Button>
      }
    >
      <div aria-live="polite">
        {error !== null && <ErrorPanel error={error} />}
        {data !== undefined && !isPending && <Result result={data} />}
        {data === undefined && error === null && (
          <p className={styles.muted}>
            A test sends one signed request about a flag named <code>webhook-test</code>, also if
            the webhook is disabled. It is not listed among the deliveries.
          </p>
        )}
      </div>
    </Card>
  );
}

function Result({ result }: { result: WebhookTestResult }) {
  const { success: isSuccess, status_code: status, response_time_ms: ms, error } = result;
  const body = result.response_body ?? "";
  const Icon = isSuccess ? CircleCheck : CircleX;
  return (
    <div className={styles.result} data-success={isSuccess}>
      <Icon size={18} aria-hidden />
      <div className={styles.resultText}>
        <p className={styles.strong}>
          {isSuccess ? "The test succeeded" : "The test failed"}: {error ?? `status ${status}`} (
          {ms} ms)
        </p>
        {!isSuccess && <p>{explainFailure(status)}</p>}
        {body !== "" && <CodeBlock title="Response body" code={body} />}
      </div>
    </div>
  );
}
