/** @module Plain tables for people: columns padded with spaces, figures to the right, no colour and no frame. */

/** Lines without trailing spaces. A column whose cells, header aside, all begin like a number is aligned to the right. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [header, ...rows];
  const columns = header.map((_, column) => {
    const cells = rows.map((row) => row[column] ?? '');
    return {
      width: Math.max(...all.map((row) => width(row[column] ?? ''))),
      right: rows.length > 0 && cells.every((cell) => /^[-−+]?[\d.]/.test(cell) || cell === '' || cell === '-'),
    };
  });
  return all
    .map((row) =>
      columns
        .map(({ width: to, right }, column) => {
          const cell = row[column] ?? '';
          const padding = ' '.repeat(to - width(cell));
          return right ? padding + cell : cell + padding;
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function width(text: string): number {
  return [...text].length;
}
