import { usePermission } from "../session/use-permission.ts";
import { Card, Warning } from "../ui/panels.tsx";
import { Restricted } from "../ui/restricted.tsx";
import { ArchiveFlag } from "./archive-flag.tsx";
import { DeleteFlag } from "./delete-flag.tsx";
import { useFlagInPage } from "./flag-page.tsx";
import { FlagSettingsForm } from "./flag-settings-form.tsx";
import { FlagSnippets } from "./flag-snippets.tsx";
import { FlagUsageCard } from "./flag-usage-card.tsx";
import styles from "./settings-tab.module.css";

/** The settings, which all environments share, and the environments that evaluate the flag. */
export function SettingsTab() {
  const { flag } = useFlagInPage();
  const { reason, isOffered } = usePermission("change_project");
  return (
    <div className={styles.cards}>
      {isOffered ? (
        <Card title="Settings">
          <Restricted reason={reason}>
            <FlagSettingsForm key={flag.id} />
          </Restricted>
        </Card>
      ) : (
        <Warning>
          Your key changes only one environment. The settings of a flag apply to all environments,
          so this key cannot change them, archive the flag or delete it.
        </Warning>
      )}
      <FlagUsageCard />
      <FlagSnippets />
      {isOffered && (
        <>
          <ArchiveFlag />
          <DeleteFlag />
        </>
      )}
    </div>
  );
}
