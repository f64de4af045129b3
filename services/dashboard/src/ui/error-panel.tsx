import { CircleAlert, WifiOff } from "lucide-react";
import { ApiProblem, adviceFor, ConnectionLost, draftIn } from "../api/problem.ts";
import { Button, ButtonLink } from "./button.tsx";
import styles from "./panels.module.css";

/** Shows what went wrong and what to do about it. `onRetry` offers to repeat the request. */
export function ErrorPanel({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const isConnection = error instanceof ConnectionLost;
  const draft = draftIn(error);
  const Icon = isConnection ? WifiOff : CircleAlert;
  const message = error instanceof Error ? error.message : "Something went wrong.";
  return (
    <div role="alert" className={`${styles.panel} ${styles.error}`}>
      <Icon size={18} aria-hidden className={styles.icon} />
      <div className={styles.text}>
        <p className={styles.message}>{message}</p>
        <p>{adviceFor(error)}</p>
        {error instanceof ApiProblem && error.code !== "" && (
          <p className={styles.detail}>
            {error.code}
            {error.requestId !== null && ` · request ${error.requestId}`}
          </p>
        )}
      </div>
      {draft !== undefined && (
        <ButtonLink size="small" to="/change-requests/$requestId" params={{ requestId: draft }}>
          Open the draft
        </ButtonLink>
      )}
      {onRetry !== undefined && (
        <Button size="small" onPress={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}
