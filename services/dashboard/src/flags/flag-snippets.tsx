import { ButtonLink } from "../ui/button.tsx";
import { Card } from "../ui/panels.tsx";
import { useFlagInPage } from "./flag-page.tsx";
import { SnippetPicker } from "./snippet-picker.tsx";

/** Code examples for reading the flag in an application. */
export function FlagSnippets() {
  const { flag } = useFlagInPage();
  return (
    <Card
      title="Use it in your code"
      actions={
        <ButtonLink size="small" to="/connect">
          Connect an application
        </ButtonLink>
      }
    >
      <SnippetPicker flag={flag} />
    </Card>
  );
}
