import type { ChangeRequest } from "../api/schema.d.ts";
import { describeChange } from "../changes/describe-change.ts";
import { useKeySession } from "../session/session.tsx";
import { Card } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Time } from "../ui/time.tsx";
import styles from "./change-requests.module.css";
import { useRequestLog } from "./request-queries.ts";

/** What happened to a request, the newest first. A bypass is red. */
export function RequestLog({ request }: { request: ChangeRequest }) {
  const { environments } = useKeySession().me;
  const query = useRequestLog(request);
  return (
    <Card title="What happened">
      <QueryView query={query} label="Loading what happened">
        {(changes) => (
          <ol className={styles.log} aria-label="What happened">
            {changes.map((change) => {
              const { id, action, actor, environment_id, changed_at } = change;
              const environment = environments.find((each) => each.id === environment_id)?.name;
              const isBypass = action === "change_request_bypassed";
              return (
                <li key={id} className={isBypass ? (styles.danger ?? "") : ""}>
                  <span>
                    <strong>{actor.email}</strong> {describeChange(change, environment)}
                  </span>
                  <span className={styles.note}>
                    <Time at={changed_at} />
                  </span>
                </li>
              );
            })}
          </ol>
        )}
      </QueryView>
    </Card>
  );
}
