import type { ChangeRequest } from "../api/schema.d.ts";
import { sentenceOf, sentenceText } from "../changes/describe-change.ts";
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
              const sentence = sentenceOf(change, environment);
              // The title of the request is that of the page.
              const isStep = action.startsWith("change_request_");
              return (
                <li key={id} className={isBypass ? (styles.danger ?? "") : ""}>
                  <span>
                    <strong>{actor.email}</strong> {isStep ? sentence.verb : sentenceText(sentence)}
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
