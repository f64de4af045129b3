import { CodeBlock } from "../ui/code-block.tsx";
import { Card } from "../ui/panels.tsx";
import { useFlagInPage } from "./flag-page.tsx";
import styles from "./settings-tab.module.css";
import { snippetsFor } from "./snippets.ts";

/** Code examples for reading the flag in an application. */
export function FlagSnippets() {
  const { flag } = useFlagInPage();
  return (
    <Card title="Use it in your code">
      <div className={styles.stack}>
        {snippetsFor(flag.key, window.location.origin).map(({ title, code }) => (
          <CodeBlock key={title} title={title} code={code} />
        ))}
      </div>
    </Card>
  );
}
