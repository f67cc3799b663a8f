// The texts of the import of employees, in both languages in one file: they are fetched with its dialog and are no part of
// the first load, which every text of the dictionaries is.
import { fill, type Values } from '@tidepool/shared/i18n/translate';
import { useCallback } from 'react';
import { useText, type Key } from '../messages';

export const en = {
  'import.chooseLead': 'Nothing is changed until you have seen what each line does.',
  'import.previewLead': 'Nothing is changed yet. This is what each line would do.',
  'import.resultLead': 'This is what each line did.',
  'import.file': 'CSV file',
  'import.text': 'Or paste lines',
  'import.hint':
    'The first line names the columns: email, name, department, quota, profession, password. Only email must be there. An empty cell changes nothing.',
  'import.hintQuota':
    'The quota is in tokens per day; 0 means no limit. The profession is its code or its name: the person gets a ready assistant of its pool. A password is used for new accounts only.',
  'import.limit': 'At most 2,000 lines and 512 KiB.',
  'import.tooLarge': 'The file is larger than 512 KiB. Split it.',
  'import.notText': 'The file is not UTF-8. Save it as “CSV UTF-8” and choose it again.',
  'import.preview': 'Preview',
  'import.previewAgain': 'Preview again',
  'import.back': 'Back',
  'import.run': 'Import',
  'import.summary': '{create} new, {update} changed, {unchanged} unchanged, {refuse} refused.',
  'import.willAssign': '{count} would get an assistant.',
  'import.assigned': '{count} got an assistant.',
  'import.noLines': 'The file has no lines after the first.',
  'import.ignored': 'Columns that are not used: {columns}.',
  'import.correct':
    'Correct the refused lines and import the file again. Lines that are done stay unchanged.',
  'import.unknown':
    'No answer came back, so some lines may have been done. Preview again: those that are done show as unchanged.',
  'import.show': 'Show',
  'import.all': 'All lines',
  'import.line': 'Line',
  'import.effect': 'What it does',
  'import.create': 'New',
  'import.update': 'Changed',
  'import.unchanged': 'Unchanged',
  'import.refuse': 'Refused',
  'import.nothing': 'empty',
  'import.changed': '{field}: {old} → {new}',
  'import.gets': 'Gets {instance} ({profession})',
  'import.has': 'Has an assistant of {profession} already',
  'import.passwordIgnored': 'The password is not used, because the account exists.',
  'import.reason.cells':
    'The line cannot be split into cells: a quote is not closed, or it has more cells than the first line.',
  'import.reason.email': 'This is not an e-mail address.',
  'import.reason.duplicate': 'An earlier line has the same address.',
  'import.reason.text': 'The name or the department has more than 100 characters.',
  'import.reason.quota': 'The quota must be a whole number; 0 means no limit.',
  'import.reason.password': 'The password must have 8 characters or more, and at most 1,024 bytes.',
  'import.reason.revoked': 'The account is revoked. Restore it first, or take it out of the file.',
  'import.reason.profession_unknown': 'No profession has this code or name.',
  'import.reason.profession_ambiguous': 'Several professions have this name. Use the code.',
  'import.reason.profession_inactive': 'This profession is not offered any more.',
  'import.reason.pool_empty':
    'No assistant of this profession is ready. Add one to its pool, or leave the cell empty.',
  'import.reason.no_access': 'Your role may not give assistants of a profession.',
  'import.reason.conflict': 'Somebody else changed the same account just now. Preview again.',
  'import.reason.failed': 'The server failed, and this line changed nothing. Try it again.',
  'import.reason.uncertain':
    'The server failed while it stored this line. Preview again to see whether it is done.',
  'import.reason.not_tried': 'Not tried, because the server failed at the lines before.',
};

type OwnKey = keyof typeof en;
/** Those of the dictionaries are at hand, too. */
export type ImportKey = Key | OwnKey;
export type Translate = (key: ImportKey, values?: Values) => string;

export const zh: Record<OwnKey, string> = {
  'import.chooseLead': '在您查看每一行的作用之前，不会做任何更改。',
  'import.previewLead': '尚未做任何更改。以下是每一行将执行的操作。',
  'import.resultLead': '以下是每一行执行的操作。',
  'import.file': 'CSV 文件',
  'import.text': '或粘贴内容',
  'import.hint':
    '首行为列名：email、name、department、quota、profession、password（也可用“邮箱、姓名、部门、配额、职业、密码”）。只有 email 必填。空单元格不做更改。',
  'import.hintQuota':
    'quota 为每日令牌数，0 表示不限。profession 为职业的代码或名称：该员工会从其实例池中获得一个可用的助手。password 只用于新账号。',
  'import.limit': '最多 2,000 行、512 KiB。',
  'import.tooLarge': '文件超过 512 KiB，请拆分。',
  'import.notText': '文件不是 UTF-8 编码。请另存为“CSV UTF-8”后重新选择。',
  'import.preview': '预览',
  'import.previewAgain': '重新预览',
  'import.back': '返回',
  'import.run': '导入',
  'import.summary': '新增 {create}，更改 {update}，不变 {unchanged}，拒绝 {refuse}。',
  'import.willAssign': '{count} 人将获得助手。',
  'import.assigned': '{count} 人已获得助手。',
  'import.noLines': '首行之后没有内容。',
  'import.ignored': '未使用的列：{columns}。',
  'import.correct': '请更正被拒绝的行后再次导入该文件。已完成的行保持不变。',
  'import.unknown': '没有收到答复，部分行可能已完成。请重新预览：已完成的行会显示为不变。',
  'import.show': '显示',
  'import.all': '所有行',
  'import.line': '行',
  'import.effect': '作用',
  'import.create': '新增',
  'import.update': '更改',
  'import.unchanged': '不变',
  'import.refuse': '拒绝',
  'import.nothing': '空',
  'import.changed': '{field}：{old} → {new}',
  'import.gets': '获得 {instance}（{profession}）',
  'import.has': '已有{profession}的助手',
  'import.passwordIgnored': '账号已存在，不使用该密码。',
  'import.reason.cells': '该行无法拆分为单元格：引号未闭合，或单元格多于首行。',
  'import.reason.email': '不是邮箱地址。',
  'import.reason.duplicate': '前面的行已有相同的邮箱。',
  'import.reason.text': '姓名或部门超过 100 个字符。',
  'import.reason.quota': '配额必须是整数；0 表示不限。',
  'import.reason.password': '密码至少 8 个字符，且不超过 1,024 字节。',
  'import.reason.revoked': '该账号已停用。请先恢复，或从文件中删除该行。',
  'import.reason.profession_unknown': '没有此代码或名称的职业。',
  'import.reason.profession_ambiguous': '多个职业使用此名称，请使用代码。',
  'import.reason.profession_inactive': '该职业已不再提供。',
  'import.reason.pool_empty': '该职业没有可用的助手。请向其实例池添加一个，或将单元格留空。',
  'import.reason.no_access': '您的角色不能分配职业助手。',
  'import.reason.conflict': '刚刚有人更改了同一账号，请重新预览。',
  'import.reason.failed': '服务器出错，该行未做更改，请重试。',
  'import.reason.uncertain': '服务器在保存该行时出错。请重新预览以确认是否已完成。',
  'import.reason.not_tried': '未执行，因为服务器在前面的行出错。',
};

export const isOwn = (key: string): key is OwnKey => Object.hasOwn(en, key);

export function useImportText() {
  const i18n = useText();
  const { language, t: general } = i18n;
  const t = useCallback<Translate>(
    (key, values) => (isOwn(key) ? fill({ en, zh }[language][key], values, language) : general(key, values)),
    [language, general],
  );
  return { ...i18n, t };
}
