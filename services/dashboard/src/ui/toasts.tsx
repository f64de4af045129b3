import { X } from "lucide-react";
// React Aria has no stable toasts yet. A replacement would need their landmark, focus and pausing timers too. The exact
// version in package.json keeps these names from changing by themselves.
import {
  Button as AriaButton,
  Text,
  UNSTABLE_Toast as Toast,
  UNSTABLE_ToastContent as ToastContent,
  UNSTABLE_ToastQueue as ToastQueue,
  UNSTABLE_ToastRegion as ToastRegion,
} from "react-aria-components";
import { Button } from "./button.tsx";
import styles from "./toasts.module.css";

type Notice = {
  text: string;
  kind?: "info" | "error";
  action?: { label: string; onPress: () => void };
};

/** Time after which a notice closes. React Aria recommends at least five seconds, for slow readers. */
const noticeMs = 8_000;

const queue = new ToastQueue<Notice>({ maxVisibleToasts: 4 });

/**
 * Shows a notice at the edge of the window, which screen readers announce. An error stays until it is dismissed, because
 * nothing else on the page repeats it. Returns a function that removes the notice.
 */
export function notify(notice: Notice): () => void {
  const key = queue.add(notice, notice.kind === "error" ? {} : { timeout: noticeMs });
  return () => queue.close(key);
}

export function Toasts() {
  return (
    <ToastRegion queue={queue} className={styles.region ?? ""} aria-label="Notices">
      {({ toast }) => (
        <Toast
          toast={toast}
          className={`${styles.toast} ${toast.content.kind === "error" ? styles.error : ""}`}
        >
          <ToastContent className={styles.content ?? ""}>
            <Text slot="title">{toast.content.text}</Text>
          </ToastContent>
          {toast.content.action !== undefined && (
            <Button
              size="small"
              onPress={() => {
                toast.content.action?.onPress();
                queue.close(toast.key);
              }}
            >
              {toast.content.action.label}
            </Button>
          )}
          <AriaButton slot="close" className={styles.close ?? ""} aria-label="Dismiss">
            <X size={16} aria-hidden />
          </AriaButton>
        </Toast>
      )}
    </ToastRegion>
  );
}
