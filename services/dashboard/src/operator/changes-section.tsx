import type { AuditedChange, Project } from "../api/schema.d.ts";
import { describeChange } from "../changes/describe-change.ts";
import { QueryView } from "../ui/query-view.tsx";
import { Time } from "../ui/time.tsx";
import styles from "./operator.module.css";
import { useNewestChanges } from "./operator-queries.ts";
import { Section } from "./section.tsx";

/** The newest entries of the project's audit log. The page of a server key has all of them, with filters. */
export function ChangesSection({ project }: { project: Project }) {
  const changes = useNewestChanges(project.id);
  return (
    <Section
      title="Newest changes"
      lead="The audit log of the project. With a server key of the project, the page History shows all of it."
    >
      <QueryView query={changes} label="Loading the newest changes">
        {(entries) =>
          entries.length === 0 ? (
            <p className={styles.note}>Nothing has changed yet.</p>
          ) : (
            <ul className={styles.changes}>
              {entries.map((change) => (
                <Entry key={change.id} change={change} project={project} />
              ))}
            </ul>
          )
        }
      </QueryView>
    </Section>
  );
}

function Entry({ change, project }: { change: AuditedChange; project: Project }) {
  const environment = project.environments.find(({ id }) => id === change.environment_id);
  return (
    <li>
      <span>
        <span className={styles.strong}>{change.actor.email}</span>{" "}
        {describeChange(change, environment?.name)}
      </span>
      <span className={styles.note}>
        <Time at={change.changed_at} />
      </span>
    </li>
  );
}
