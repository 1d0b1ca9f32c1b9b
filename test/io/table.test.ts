import { expect, test } from 'vitest';
import { table } from '../../src/io/table.ts';

test('columns are aligned, figures to the right, without trailing spaces', () => {
  expect(
    table(
      ['policy', 'success', 'note'],
      [
        ['random', '0.01', 'é'],
        ['trained', '10.5', ''],
      ],
    ),
  ).toMatchInlineSnapshot(`
    "policy   success  note
    random      0.01  é
    trained     10.5"
  `);
});
