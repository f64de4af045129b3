import type { ReactNode } from "react";
import styles from "./table.module.css";

export type Column<Row> = {
  id: string;
  header: string;
  /** Hides the header from sighted people, for columns of buttons. */
  isHeaderHidden?: boolean;
  align?: "start" | "end";
  cell: (row: Row) => ReactNode;
};

/** The column with the actions of each row. */
export const actionsColumn = <Row,>(cell: Column<Row>["cell"]): Column<Row> => ({
  id: "actions",
  header: "Actions",
  isHeaderHidden: true,
  align: "end",
  cell,
});

/** Columns that fit beside each other on narrow screens. */
const narrowColumns = 2;

type TableProps<Row> = { label: string; columns: readonly Column<Row>[]; rows: readonly Row[] };

/**
 * A table of at most a few hundred rows. On narrow screens, a row of more than two columns is a block with a line for
 * each column, so that nothing is hidden.
 */
export function Table<Row extends { id: string }>({ label, columns, rows }: TableProps<Row>) {
  const classOf = ({ align }: Column<Row>) => (align === "end" ? (styles.end ?? "") : "");
  const stacks = columns.length > narrowColumns ? styles.stacks : "";
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard.
    <section className={styles.frame} aria-label={label} tabIndex={0}>
      <table className={`${styles.table} ${stacks}`}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.id} scope="col" className={classOf(column)}>
                <span className={column.isHeaderHidden ? "visually-hidden" : ""}>
                  {column.header}
                </span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id}>
              {columns.map((column) => (
                <td
                  key={column.id}
                  className={classOf(column)}
                  {...(!column.isHeaderHidden && { "data-header": column.header })}
                >
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
