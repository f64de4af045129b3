import { Button } from "../ui/button.tsx";
import { Card } from "../ui/panels.tsx";
import styles from "./operator.module.css";

type DeletionCardProps = { kind: "organization" | "project"; name: string; onDelete: () => void };

/** The end of the page of a resource, which offers to delete it. */
export function DeletionCard({ kind, name, onDelete }: DeletionCardProps) {
  return (
    <Card title={`Delete the ${kind}`}>
      <div className={styles.danger}>
        <p>
          Ends everything that belongs to <bdi>{name}</bdi>: its API keys, flags, schedules and
          webhooks.
        </p>
        <Button variant="danger" onPress={onDelete}>
          Delete {kind}
        </Button>
      </div>
    </Card>
  );
}
