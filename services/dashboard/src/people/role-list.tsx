import { useState } from "react";
import type { Grant } from "../api/schema.d.ts";
import { Button } from "../ui/button.tsx";
import { RevokeRoleDialog } from "./grant-dialogs.tsx";
import { grantSentence } from "./grant-sentence.ts";
import { whyNotGive } from "./may-give.ts";
import styles from "./people.module.css";
import type { PeopleData } from "./people-page.tsx";

type Props = {
  data: Pick<PeopleData, "own" | "projects">;
  /** The name of the user or of the group. */
  subject: string;
  grants: readonly Grant[];
};

/** The roles of a user or a group in sentences, each with its withdrawal. */
export function RoleList({ data: { own, projects }, subject, grants }: Props) {
  const [revoked, setRevoked] = useState<Grant>();
  if (grants.length === 0) return <span className={styles.note}>No role</span>;
  return (
    <>
      <ul className={styles.roles}>
        {grants.map((grant) => {
          const sentence = grantSentence(grant, projects);
          const reason = whyNotGive(own, grant);
          return (
            <li key={grant.id}>
              <span>
                <strong>{grant.role}</strong>: {sentence}
              </span>
              {reason === undefined ? (
                <Button
                  size="small"
                  onPress={() => setRevoked(grant)}
                  aria-label={`Revoke of ${subject}: ${sentence}`}
                >
                  Revoke
                </Button>
              ) : (
                <span className={styles.note}>Cannot be revoked by you. {reason}</span>
              )}
            </li>
          );
        })}
      </ul>
      {revoked !== undefined && (
        <RevokeRoleDialog
          {...{ grant: revoked, subject, projects }}
          onClose={() => setRevoked(undefined)}
        />
      )}
    </>
  );
}
