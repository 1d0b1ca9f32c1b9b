/** @module The decoding grammar of an environment: the token sequences that write one valid action, and no others. */
import type { Environment } from '../../env/environment.ts';
import { inputError } from '../../records/errors.ts';
import { type Tokenizer, toBytes } from '../tokenizer.ts';
import { type Language, Languages } from './language.ts';
import { Values } from './schema.ts';
import { type Grammar, tokenGrammar } from './tokens.ts';

export type { Grammar } from './tokens.ts';

/**
 * Admits exactly the texts of one call of a declared tool with arguments that its schema admits, or of a final answer that the
 * answer's schema admits, each as the environment's format writes it (`src/env/format.ts`), and of each text only its encoding.
 * JSON is what JSON.stringify gives: no spaces, keys in declared order; one call an action.
 * @throws GRAMMAR_TOO_LARGE where it cannot be seen in reasonable time whether a schema's patterns have a string in common.
 * @throws GRAMMAR_UNSUPPORTED where a schema cannot be turned into a grammar: names the tool, the parameter, and what is supported.
 */
export function actionGrammar(
  environment: Pick<Environment, 'tools' | 'answer' | 'format'>,
  tokenizer: Tokenizer,
): Grammar {
  const languages = new Languages();
  const values = new Values(languages);
  const text = (written: string) => languages.word(toBytes(written));
  const { tools, answer, format } = environment;
  const actions: Language[] = tools.map(({ name, parameters }) => {
    const place = `tool ${name}, parameters`;
    if (format === 'json') {
      return languages.sequence(
        text(`{"tool":${JSON.stringify(name)},"args":`),
        values.json(parameters, place),
        text('}'),
      );
    }
    if (name === 'answer') {
      throw inputError(
        'GRAMMAR_UNSUPPORTED',
        'a tool called "answer": in the compact format that is the final answer',
        "Rename it, or use format: 'json'.",
      );
    }
    return languages.sequence(text(`${name} `), values.only(parameters, place));
  });
  const final =
    format === 'json'
      ? languages.sequence(text('{"final":'), values.quoted(answer, 'answer'), text('}'))
      : languages.sequence(text('answer '), values.text(answer, 'answer'));
  return tokenGrammar(languages, languages.choice(...actions, final), tokenizer);
}
