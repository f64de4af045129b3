import { KeyRound } from "lucide-react";
import { type FormEvent, use, useEffect, useState } from "react";
import { AdvisedError, ApiProblem } from "../api/problem.ts";
import { Button } from "../ui/button.tsx";
import { DialogContext } from "../ui/dialog-context.ts";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { TextField } from "../ui/fields.tsx";
import { Logo } from "../ui/logo.tsx";
import { Warning } from "../ui/panels.tsx";
import { useSessions } from "./session.tsx";
import { exchangeCode } from "./sign-in-code.ts";
import styles from "./sign-in-page.module.css";

/** The page of a tab without a current session. It offers the other keys of the tab, if there are any. */
export function SignInPage() {
  const { keys, switchTo } = useSessions();
  return (
    <main className={styles.page}>
      <div className={styles.frame}>
        <Logo />
        <h1>Sign in</h1>
        {keys.map(({ token, me }) => (
          <Button key={me.key.id} onPress={() => void switchTo(token)}>
            Continue in {me.project.name} with {me.key.name}
          </Button>
        ))}
        <SignInForm />
      </div>
    </main>
  );
}

/**
 * Signs in with a server key or the operator's token. A link with a one-time code needs neither. The field is not a
 * password field, because browsers offer to store passwords beyond the tab.
 */
export function SignInForm({ onDone }: { onDone?: () => void }) {
  const { signIn, ended } = useSessions();
  const [token, setToken] = useState("");
  const [error, setError] = useState<unknown>();
  const [isPending, setPending] = useState(false);
  const { markInput } = use(DialogContext);

  async function run(tokenOf: () => Promise<string | undefined>) {
    setPending(true);
    setError(undefined);
    try {
      const given = await tokenOf();
      if (given !== undefined) {
        if (await signIn(given)) onDone?.();
      }
    } catch (failure) {
      setError(failure);
    } finally {
      setPending(false);
    }
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: the code of an address is used once.
  useEffect(() => {
    const exchange = () => void run(exchangeCode);
    exchange();
    // Another link in the same tab changes only the fragment.
    window.addEventListener("hashchange", exchange);
    return () => window.removeEventListener("hashchange", exchange);
  }, []);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    void run(async () => token.trim());
  };
  return (
    <form className={styles.form} onSubmit={submit} onInput={markInput} autoComplete="off">
      {ended !== undefined && error === undefined && <Warning>{ended}</Warning>}
      <TextField
        label="Server key"
        value={token}
        onChange={setToken}
        autoComplete="off"
        autoFocus
        isCode
        isSecret
        placeholder="hs_…"
        description="Your own server key, or the operator's token. The browser keeps it in this tab only."
      />
      {error !== undefined && <SignInError error={error} />}
      <div className={styles.actions}>
        {onDone !== undefined && <Button onPress={onDone}>Cancel</Button>}
        <Button
          type="submit"
          variant="primary"
          isPending={isPending}
          isDisabled={token.trim() === ""}
        >
          Sign in
        </Button>
      </div>
      <p className={styles.note}>
        <KeyRound size={16} aria-hidden />
        <span>
          Each person uses a key of their own: every change is recorded with the user of the key
          that made it. An operator or a colleague issues keys on the API keys page.
        </span>
      </p>
    </form>
  );
}

function SignInError({ error }: { error: unknown }) {
  if (error instanceof ApiProblem && error.status === 403)
    return (
      <ErrorPanel
        error={
          new AdvisedError(
            "This key cannot manage flags.",
            "The dashboard needs a server key, which begins with hs_.",
          )
        }
      />
    );
  return <ErrorPanel error={error} />;
}
